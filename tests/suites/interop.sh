# shellcheck shell=bash
# gRPC's own clients against interop_server: tests/interop. INTEROP_CLIENTS: those that are wanted, with commas between; empty: all.
source "$SUITES/debs.sh"
source "$SUITES/gotool.sh"
INTEROP_CLIENTS=${INTEROP_CLIENTS:-}
interop_folder=$QUANTD_BUILD/interop

prepare() {
  mkdir -p "$interop_folder"
  build_go_tool interop-client google.golang.org/grpc/interop/client@v1.58.3 || return
  [[ -z $INTEROP_CLIENTS ]] || return 0
  mkdir -p "$interop_folder/java" && cp "$QUANTD_ROOT/tests/interop/java/pom.xml" "$interop_folder/java/" && cd "$interop_folder/java" &&
    mvn --batch-mode --quiet --no-transfer-progress -Dmaven.repo.local="$interop_folder/java/repository" \
      org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile=classpath
}

run() {
  go_tools_path
  report_cases < <(python3 "$QUANTD_ROOT/tests/interop/run.py" "$QUANTD_BUILD/release/tests/interop/interop_server" "$interop_folder" \
    --clients="$INTEROP_CLIENTS" 2>"$QUANTD_LOGS/$RESULT_SUITE.log" || printf 'fail\trun.py\tbuild/logs/%s.log\n' "$RESULT_SUITE")
}
