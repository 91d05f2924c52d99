# shellcheck shell=bash
# gRPC's own clients against interop_server and quantd: tests/interop. INTEROP_CLIENTS: the selected ones, separated by commas; empty: all.
source "$SUITES/debs.sh"
source "$SUITES/gotool.sh"
INTEROP_CLIENTS=${INTEROP_CLIENTS:-}
interop_folder=$QUANTD_BUILD/interop

prepare() {
  mkdir -p "$interop_folder"
  build_go_tool interop-client google.golang.org/grpc/interop/client@v1.58.3 || return
  [[ -z $INTEROP_CLIENTS ]] || return 0
  prepare_sources || return
  mkdir -p "$interop_folder/java" && cp "$QUANTD_ROOT/tests/interop/java/pom.xml" "$interop_folder/java/" && cd "$interop_folder/java" &&
    mvn --batch-mode --quiet --no-transfer-progress -Dmaven.repo.local="$interop_folder/java/repository" \
      org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile=classpath
}

# The client that no registry has, from the source of Debian's gRPC. Like Python's, which all end-to-end tests use, it is on gRPC's C core.
prepare_sources() {
  local grpc
  grpc=$(unpack_source grpc) || return
  cmake -S "$QUANTD_ROOT/tests/interop/cpp" -B "$interop_folder/cpp" -DGRPC_SOURCE="$grpc" -DCMAKE_BUILD_TYPE= &&
    cmake --build "$interop_folder/cpp"
}

run() {
  local server=$QUANTD_BUILD/release/tests/interop/interop_server
  if ! packages_list test | grep -qx grpc-proto; then
    skip "interop" "this Debian has no package grpc-proto, from which interop_server is made"
    return
  fi
  build_tree release interop_server
  go_tools_path
  report_cases < <(python3 "$QUANTD_ROOT/tests/interop/run.py" "$server" \
    "$QUANTD_BUILD/release/server/quantd" "$interop_folder" \
    --clients="$INTEROP_CLIENTS" 2>"$QUANTD_LOGS/$RESULT_SUITE.log" || printf 'fail\trun.py\tbuild/logs/%s.log\n' "$RESULT_SUITE")
}
