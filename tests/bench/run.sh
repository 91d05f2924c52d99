#!/usr/bin/env bash
# Measures: tests/bench/run.sh [--quick] [SECTION...] [flags]. All sections, or only the named ones; --list names them. Prints
# tables, and writes the figures into build/bench/results.json, beside those of other sections. --plot also draws section break_even, as tests/bench/throughput.svg. Flags are those of quantd_bench
# (--filter='tcp 1 MiB x 4', ...); Python's sections have only --quick.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../deploy/packages.sh"
source "$here/../suites/lib.sh"
source "$here/../suites/venv.sh"
cd "$QUANTD_ROOT"
built=$QUANTD_BUILD/release/tests/bench results=$QUANTD_BUILD/bench
cpp=(kernels operations table stream beside shared tls scaling peers)
python=(client async break_even engine embeddings)

among() { [[ " ${*:2} " == *" $1 "* ]]; }
sections=() flags=() quick=() plot=false
for word in "$@"; do
  case $word in
    --list) printf '%s\n' "${cpp[@]}" "${python[@]}" && exit ;;
    --quick) quick=(--quick) ;;
    --plot) plot=true ;;
    -*) flags+=("$word") ;;
    *)
      among "$word" "${cpp[@]}" "${python[@]}" || die "no section '$word': ${cpp[*]} ${python[*]}"
      sections+=("$word")
      ;;
  esac
done
mkdir -p "$results" "$QUANTD_LOGS"
if [[ ${#sections[@]} -eq 0 ]]; then
  rm -f "$results/results.json"
  sections=("${cpp[@]}" "${python[@]}")
  [[ ${#quick[@]} -eq 0 ]] || sections=("${sections[@]/scaling/}") # takes long
fi

# left_out SECTIONS WHY
left_out() { printf '\n%s: left out, %s; see build/logs/bench.log\n' "$1" "$2"; }
ours=() pythons=()
for section in "${sections[@]}"; do
  among "$section" "${cpp[@]}" && ours+=("$section")
  among "$section" "${python[@]}" && pythons+=("$section")
done
packages_install build test
begin=$SECONDS
echo "TCP's congestion control: $(</proc/sys/net/ipv4/tcp_congestion_control)"
if [[ ${#ours[@]} -gt 0 ]]; then
  build_tree release quantd_bench quantd -- -DQUANTD_BUILD_TESTS=ON
  peer=()
  if among operations "${ours[@]}" || among peers "${ours[@]}"; then
    # ONNX Runtime comes from the Python wheel, in the version of the conformance tests.
    if prepare_gate_venv >"$QUANTD_LOGS/bench.log" 2>&1; then
      "$GATE_VENV/bin/python" "$here/models.py" "$results/models"
      peer=(--onnxruntime="$(ls "$GATE_VENV"/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*)"
        --models="$results/models" --python="$GATE_VENV/bin/python")
    else
      left_out "ONNX Runtime" "its Python wheel can't be installed"
    fi
  fi
  "$built/quantd_bench" "${ours[@]}" "${quick[@]}" "${peer[@]}" "${flags[@]}" --json="$results/results.json"
fi
if [[ ${#pythons[@]} -gt 0 ]]; then
  # shellcheck source=tests/suites/engine.sh
  if (source "$SUITES/engine.sh" && prepare && build) >"$QUANTD_LOGS/bench.log" 2>&1; then
    build_tree release quantd -- -DQUANTD_BUILD_TESTS=ON
    "$QUANTD_BUILD/venv-engine/bin/python" "$here/python_bench.py" "${pythons[@]}" "${quick[@]}" --json="$results/results.json"
  else
    left_out "${pythons[*]}" "quantd_core can't be built or installed"
  fi
fi
if $plot; then python3 "$here/plot.py" "$results/results.json" "$here/throughput.svg"; fi
printf '\nAll figures: build/bench/results.json; measured in %d s\n' $((SECONDS - begin))
