# shellcheck shell=bash
# client/java, built in a copy, so that nothing is written beside the sources; everything that Maven downloads is in build/.
java_tree=$CLIENTS_BUILD/java/tree

maven() { mvn --batch-mode --quiet --no-transfer-progress -Dmaven.repo.local="$CLIENTS_BUILD/java/repository" "$@"; }

prepare_java() {
  rm -rf "$java_tree" && mkdir -p "$java_tree/client" "$java_tree/deploy" &&
    cp -r "$QUANTD_ROOT/proto" "$QUANTD_ROOT/LICENSE" "$java_tree/" &&
    cp "$QUANTD_ROOT/deploy/service_config.json" "$java_tree/deploy/" || return
  (cd "$QUANTD_ROOT/client" && tar -c --exclude=target java) | tar -x -C "$java_tree/client" || return
  # Also the tests that need no server, so that Maven downloads what runs tests.
  cd "$java_tree/client/java" && maven package
}

run_java() {
  local report
  rm -rf "$java_tree/client/java/target/surefire-reports"
  (cd "$java_tree/client/java" && maven --offline surefire:test >"$QUANTD_LOGS/clients-java.log" 2>&1)
  for report in "$java_tree"/client/java/target/surefire-reports/TEST-*.xml; do python3 "$SUITES/junit.py" "$report"; done | cases java
  MAVEN_OPTS="-Dmaven.repo.local=$CLIENTS_BUILD/java/repository" check "java: README's commands" readme java
}
