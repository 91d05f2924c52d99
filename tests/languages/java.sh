# shellcheck shell=bash
# The Java client: its own tests, and the example as a program that depends on the installed jar.
java_tree=$CLIENTS_BUILD/java/tree
java_consumer=$CLIENTS_BUILD/java/consumer

maven() { mvn --batch-mode --quiet --no-transfer-progress -Dmaven.repo.local="$CLIENTS_BUILD/java/repository" "$@"; }

# Built in a copy, so that nothing is written beside the sources; everything that Maven downloads is in build/.
prepare_java() {
  mkdir -p "$java_tree/client" "$java_tree/deploy" "$java_consumer" && rm -rf "$java_tree/client/java/src" "$java_tree/proto" &&
    cp -r "$QUANTD_ROOT/proto" "$QUANTD_ROOT/LICENSE" "$java_tree/" &&
    cp "$QUANTD_ROOT/deploy/service_config.json" "$java_tree/deploy/" || return
  (cd "$QUANTD_ROOT/client" && tar -c --exclude=target java) | tar -x -C "$java_tree/client" || return
  # One test that needs no server, so that Maven also downloads what runs tests.
  (cd "$java_tree/client/java" && maven install -Dtest=TensorsTest) || return
  cp "$QUANTD_ROOT/tests/languages/java/consumer.xml" "$java_consumer/pom.xml" && cp "$java_tree/client/java/example/Quantize.java" "$java_consumer/" &&
    cd "$java_consumer" && maven compile org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile=classpath
}

# The jar contains the contract, the service config and the license.
java_jar() {
  local listed name
  listed=$(python3 -m zipfile -l "$java_tree/client/java/target/quantd-client-0.1.0.jar") || return
  for name in quantd/v1/tensor.proto quantd/v1/quantization.proto quantd/v1/parameters.proto quantd/v1/QuantizationServiceGrpc.class quantd/client/service_config.json \
    META-INF/LICENSE; do
    grep -q "$name" <<<"$listed" || { echo "the jar lacks $name" && return 1; }
  done
  [[ -s $java_tree/client/java/target/quantd-client-0.1.0-sources.jar && -s $java_tree/client/java/target/quantd-client-0.1.0-javadoc.jar ]]
}

run_java() {
  local report
  # The tests write beside /tmp's own files, because the path of a socket in build/ may be too long.
  TMPDIR=$(mktemp -d) && export TMPDIR || return
  trap 'rm -rf "$TMPDIR"' EXIT
  rm -rf "$java_tree/client/java/target/surefire-reports"
  (cd "$java_tree/client/java" && maven --offline surefire:test -DargLine="-Djava.io.tmpdir=$TMPDIR" >"$QUANTD_LOGS/clients-java.log" 2>&1)
  for report in "$java_tree"/client/java/target/surefire-reports/TEST-*.xml; do python3 "$SUITES/junit.py" "$report"; done | cases java
  check "java: the jar" java_jar
  check "java: the example, with the installed jar" java -cp "$java_consumer/target/classes:$(<"$java_consumer/classpath")" Quantize
  MAVEN_OPTS="-Dmaven.repo.local=$CLIENTS_BUILD/java/repository" check "java: README's commands" readme java
}
