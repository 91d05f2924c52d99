#!/bin/bash
# In a Debian with quantd: installs its symbols, reads the stacks of a running server (RUNBOOK.md), and the stack of its crash
# (deploy/OPERATIONS.md, "Crashes").

set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get install -y --no-install-recommends binutils gdb /packages/quantd-dbgsym_*.ddeb
cd "$(mktemp -d)"
quantd --listen=127.0.0.1:0 --http_listen=127.0.0.1:0 --ready_file=ready.json 2>log &
server=$!
for _ in $(seq 300); do [[ -s ready.json ]] && break || sleep 0.1; done

gdb -p "$server" -batch -ex 'thread apply all backtrace' | tee stacks
grep 'quantd::process::WaitForSignal.*signals.cc:' stacks
grep 'quantd::loop::.*loop.cc:' stacks

kill -SEGV "$server"
wait "$server" && exit 1
id=$(sed -n 's/.* crashed .*build_id=\([0-9a-f]*\).*/\1/p' log)
grep -o 'module=quantd offset=[^ ]*' log | cut -d= -f3 |
  addr2line -Cfip -e "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" | tee functions
grep 'quantd::process::WaitForSignal.* at .*signals.cc:' functions
grep 'Serve at .*main.cc:' functions
