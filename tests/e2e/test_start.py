"""Flags, environment, addresses, the ready file, and the errors about them."""

import json
import os
import pty
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import grpc
import pytest

from support import BINARY, ENVIRONMENT, ROOT, pb, pb_grpc, quantize, run


@pytest.mark.parametrize(
    "flags, environment, named",
    [
        (["--no_such_flag=1"], {}, "unexpected argument '--no_such_flag'"),
        (["stray"], {}, "stray"),
        (["--threads=many"], {}, "threads"),
        (["--threads"], {}, "--threads"),
        (["--listen=nowhere"], {}, "--listen"),
        (["--http_listen=x"], {}, "--http_listen"),
        (["--drain_seconds=-3"], {}, "--drain_seconds"),
        (["--simd=mmx"], {}, "scalar"),
        ([], {"QUANTD_THREADS": "many"}, "QUANTD_THREADS"),
        (["--listen=127.0.0.1:0", "--http_listen=", "--ready_file=/no/such/folder/ready"], {}, "/no/such/folder/ready"),
    ],
)
def test_wrong_options_are_one_line_and_exit_code_2(flags, environment, named):
    """tests/server/options has the values of each flag, and tests/server/net the addresses."""
    code, out, error = run(*flags, environment=environment)
    assert code == 2
    assert out == ""
    lines = [line for line in error.splitlines() if not re.match(r"\d{4}-\d\d-\d\dT\S+ quantd: (config|listen|drain|stop)", line)]
    assert len(lines) == 1, error
    assert lines[0].startswith("quantd: ") and named in lines[0]


@pytest.mark.parametrize("flag", ["--listen", "--http_listen"])
def test_a_busy_port_is_one_line_and_exit_code_2(flag):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        address = "127.0.0.1:%d" % busy.getsockname()[1]
        free = {"--listen": "127.0.0.1:0", "--http_listen": "127.0.0.1:0"} | {flag: address}
        code, _, error = run(*(f"{name}={value}" for name, value in free.items()))
    assert code == 2
    assert len(error.splitlines()) == 1 and address in error and flag in error


def test_help_and_version():
    code, out, _ = run("--help")
    assert code == 0
    for flag in ("listen", "http_listen", "ready_file", "max_message_bytes", "threads", "simd", "drain_seconds"):
        assert f"--{flag}" in out
    code, out, _ = run("--version")
    assert code == 0
    assert re.fullmatch(r"quantd \d+\.\d+\.\d+\n", out)


def test_the_manual_explains_every_flag(request):
    """The table in deploy/OPERATIONS.md is made from --help."""
    help_text = run("--help")[1]
    assert max(map(len, help_text.splitlines())) <= 80
    rows = [(n, d, " ".join(t.split())) for n, d, t in re.findall(r"  --(\w+)  \((.*)\)\n((?:      .*\n)+)", help_text)]
    assert len(rows) > 15
    table = "| flag | default | |\n|---|---|---|\n" + "".join(f"| `--{n}` | {d and f'`{d}`'} | {t} |\n" for n, d, t in rows)
    readme = ROOT / "deploy" / "OPERATIONS.md"
    begin, end = "<!-- flags: pytest tests/e2e/test_start.py --update -->\n", "<!-- end of flags -->\n"
    before, rest = readme.read_text().split(begin)
    old, after = rest.split(end)
    if request.config.getoption("--update"):
        readme.write_text(before + begin + table + end + after)
    else:
        assert old == table


def test_the_log_has_the_configuration_and_the_addresses(server):
    lines = server.log().splitlines()
    assert len(lines) == 2
    assert " configuration " in lines[0] and "max_message_bytes=67108864" in lines[0]
    assert " listening " in lines[1] and server.address in lines[1] and server.http in lines[1]


def test_the_ready_file(server):
    assert set(server.ready) == {"grpc", "http", "pid"}
    assert server.ready["pid"] == server.process.pid
    assert re.fullmatch(r"127\.0\.0\.1:\d+", server.ready["http"])
    assert os.listdir(server.ready_file.parent).count(server.ready_file.name) == 1
    assert not [name for name in os.listdir(server.folder) if name.endswith(".tmp")]
    assert json.loads(server.ready_file.read_text())["grpc"] == [server.address]


def test_several_addresses_of_both_kinds(start, tmp_path):
    path = f"unix:{tmp_path}/quantd.sock"
    server = start(listen=["127.0.0.1:0,127.0.0.1:0", path])
    assert len(server.ready["grpc"]) == 3
    assert server.ready["grpc"][2] == path
    for address in server.ready["grpc"]:
        stub = pb_grpc.QuantizationServiceStub(server.channel(address))
        assert stub.Quantize(quantize([1.0, 2.0]), timeout=10).y.raw_data == b"\x02\x04"


def test_without_http(start):
    server = start("--http_listen=")
    assert server.ready["http"] == ""
    assert server.stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\x02"


def test_info_says_what_the_flags_said(start):
    server = start("--max_message_bytes=1048576", "--memory_budget_bytes=4194304", "--threads=1", "--simd=scalar")
    info = server.stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=10)
    assert info.version.count(".") == 2
    assert info.target == "scalar" and "scalar" in info.supported_targets
    assert info.threads == 1
    assert info.max_message_bytes == 1048576
    assert info.memory_budget_bytes == 4194304
    assert "stream" in info.extensions


def test_answers_over_the_message_limit(start):
    """test_limits.py has requests."""
    server = start("--max_message_bytes=65536")
    codes = pb.DequantizeRequest(x=dict(data_type=2, shape=[60000], raw_data=bytes(60000)), scale=quantize([]).scale)
    with pytest.raises(grpc.RpcError) as error:
        server.stub.Dequantize(codes, timeout=10)
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "--max_message_bytes" in error.value.details()
    assert server.stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\x02"


def test_one_request_over_the_memory_budget_names_the_flag(start):
    server = start("--memory_budget_bytes=100000")
    with pytest.raises(grpc.RpcError) as error:
        server.stub.Quantize(quantize([0.0] * 30000), timeout=10)
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "--memory_budget_bytes" in error.value.details()
    assert server.metrics()['quantd_rejected_total{reason="over_budget"}'] == 1


def test_a_machine_without_ipv6_is_listened_on_all_the_same(start):
    """[::], as in the image: there it means every address of the machine."""
    before = [sys.executable, str(Path(__file__).resolve().parent / "no_ipv6.py")]
    server = start("--http_listen=[::]:0", listen=("[::]:0",), before=before)
    assert server.address.startswith("0.0.0.0:") and server.http.startswith("0.0.0.0:")
    port, http = server.address.rpartition(":")[2], server.http.rpartition(":")[2]
    stub = pb_grpc.QuantizationServiceStub(server.channel(f"127.0.0.1:{port}"))
    assert stub.Quantize(quantize([1.0]), timeout=5).y.raw_data == b"\x02"
    assert urllib.request.urlopen(f"http://127.0.0.1:{http}/readyz", timeout=5).status == 200
    for flag in ("--listen", "--http_listen"):
        assert f"instead of [::]:0 ({flag})" in server.log()


def test_people_at_a_terminal_see_what_they_changed():
    ours, theirs = pty.openpty()
    command = [str(BINARY), "--listen=127.0.0.1:0", "--http_listen=", "--threads=1"]
    process = subprocess.Popen(command, stderr=theirs, env=ENVIRONMENT)
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        text = b""
        while b"try: " not in text or not text.endswith(b"\n"):
            text += terminal.read(4096)
        process.terminate()
        assert process.wait(30) == 0
    events = [line.split("quantd: ", 1)[1] for line in text.decode().splitlines()]
    assert [event.split(" ")[0] for event in events] == ["listening", "changed", "try:"]
    assert events[1].endswith('flags="--listen=127.0.0.1:0 --http_listen= --threads=1"')


def test_check_judges_without_serving(tmp_path):
    assert run("--check", "--threads=2")[0] == 0
    for wrong in "--threads=x", f"--auth_token_file={tmp_path}/none", f"--shared_memory_dir={tmp_path}/none":
        code, out, error = run("--check", wrong)
        assert (code, out) == (2, "") and wrong.split("=")[0] in error and len(error.splitlines()) == 1
