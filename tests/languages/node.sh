# shellcheck shell=bash
# The Node client: its own tests, and the package as npm packs it, from ES modules, CommonJS and TypeScript.
node_tree=$CLIENTS_BUILD/node/tree
node_consumer=$CLIENTS_BUILD/node/consumer

# The client is built in a copy, so that nothing is written beside its sources.
prepare_node() {
  local npm=(npm --no-audit --no-fund --no-update-notifier --loglevel=error) kind
  mkdir -p "$node_tree/client/node" "$node_tree/deploy" "$node_consumer" &&
    cp -r "$QUANTD_ROOT/proto" "$QUANTD_ROOT/LICENSE" "$node_tree/" &&
    cp "$QUANTD_ROOT/deploy/service_config.json" "$node_tree/deploy/" || return
  (cd "$QUANTD_ROOT/client/node" && tar -c --exclude=node_modules --exclude=dist --exclude=generated --exclude=./proto .) |
    tar -x -C "$node_tree/client/node" || return
  # `npm ci` first removes everything that is installed: only if the lock file has changed.
  if ! cmp -s "$node_tree/client/node/package-lock.json" "$node_tree/locked"; then
    "${npm[@]}" --prefix "$node_tree/client/node" ci && cp "$node_tree/client/node/package-lock.json" "$node_tree/locked" || return
  fi
  rm -f "$CLIENTS_BUILD"/node/*.tgz
  (cd "$node_tree/client/node" && "${npm[@]}" pack --pack-destination "$CLIENTS_BUILD/node") || return
  for kind in module commonjs; do
    rm -rf "${node_consumer:?}/$kind" && mkdir -p "$node_consumer/$kind" || return
    echo "{\"name\": \"consumer\", \"private\": true, \"type\": \"$kind\"}" >"$node_consumer/$kind/package.json"
    "${npm[@]}" --prefix "$node_consumer/$kind" --prefer-offline install "$CLIENTS_BUILD"/node/quantd-*.tgz || return
    cp "$QUANTD_ROOT/tests/languages/node/consumer.ts" "$node_consumer/$kind/"
  done
}

# The types are checked as in a strict program, with the installed package only.
node_consumer_runs() {
  cd "$node_consumer/$1" &&
    "$node_tree/client/node/node_modules/.bin/tsc" --strict --target ES2022 --module Node16 --moduleResolution Node16 \
      --typeRoots "$node_tree/client/node/node_modules/@types" --types node --skipLibCheck false consumer.ts &&
    node consumer.js
}

run_node() {
  local log=$QUANTD_LOGS/clients-node.log
  # The tests write beside /tmp's own files, because the path of a socket in build/ may be too long.
  TMPDIR=$(mktemp -d) && export TMPDIR || return
  trap 'rm -rf "$TMPDIR"' EXIT
  (cd "$node_tree/client/node" && node --test --test-reporter="$QUANTD_ROOT/tests/languages/reporter.mjs" test/*.test.mjs) 2>"$log" |
    cases node
  check "node: packed, from an ES module" node_consumer_runs module
  check "node: packed, from CommonJS" node_consumer_runs commonjs
  check "node: the example" node "$node_tree/client/node/examples/quantize.mjs"
  npm_config_cache=$CLIENTS_BUILD/node/cache npm_config_prefer_offline=true check "node: README's commands" readme node
}
