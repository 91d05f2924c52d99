# shellcheck shell=bash
# client/node, installed in a copy, so that nothing is written beside its sources.
node_tree=$CLIENTS_BUILD/node/tree

prepare_node() {
  local npm=(npm --no-audit --no-fund --no-update-notifier --loglevel=error --prefix "$node_tree/client/node")
  mkdir -p "$node_tree/client/node" "$node_tree/deploy" && cp -r "$QUANTD_ROOT/proto" "$QUANTD_ROOT/LICENSE" "$node_tree/" &&
    cp "$QUANTD_ROOT/deploy/service_config.json" "$node_tree/deploy/" || return
  find "$node_tree/client/node" -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +
  (cd "$QUANTD_ROOT/client/node" && tar -c --exclude=node_modules --exclude=./proto .) | tar -x -C "$node_tree/client/node" || return
  # `npm ci` first removes everything that is installed: only if the lock file has changed.
  if cmp -s "$node_tree/client/node/package-lock.json" "$node_tree/locked"; then
    "${npm[@]}" run prepare
  else
    "${npm[@]}" ci && cp "$node_tree/client/node/package-lock.json" "$node_tree/locked"
  fi
}

run_node() {
  (cd "$node_tree/client/node" && node --test --test-reporter="$QUANTD_ROOT/tests/languages/reporter.mjs") 2>"$QUANTD_LOGS/clients-node.log" |
    cases node
  npm_config_cache=$CLIENTS_BUILD/node/cache npm_config_prefer_offline=true check "node: README's commands" readme node
}
