"""The recipe of certificates in deploy/OPERATIONS.md works as it is pasted."""

import os
import re
import shutil
import socket
import subprocess

import pytest
from quantctl import BINARY as QUANTCTL
from support import BINARY, ROOT, wait_for


def test_the_recipe_works_by_paste(tmp_path):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    text = (ROOT / "deploy/OPERATIONS.md").read_text().split("## TLS and tokens\n", 1)[1]
    certificates, server, *clients = re.split(r"\n(?=quantd |quantctl |curl )", re.search(r"```sh\n(.*?)```", text, re.S)[1])
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            ports.append(probe.getsockname()[1])
    (tmp_path / "bin").mkdir()
    for program in BINARY, QUANTCTL:
        (tmp_path / "bin" / program.name).symlink_to(program)
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    environment |= {"QUANTD_LISTEN": f"127.0.0.1:{ports[0]}", "QUANTD_HTTP_LISTEN": f"127.0.0.1:{ports[1]}"}

    def shell(lines):
        lines = lines.replace(":50051", f":{ports[0]}").replace(":9464", f":{ports[1]}")
        return subprocess.run(["bash", "-ec", lines], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    made = shell(certificates)
    assert made.returncode == 0, made.stderr
    process = subprocess.Popen(server.rstrip(" &\n").split(), cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: shell(clients[0]).returncode == 0, 30, "quantctl info")
        in_plain_text = shell("quantctl info --address=localhost:50051")
        assert in_plain_text.returncode == 1 and "--tls_ca" in in_plain_text.stderr
        scraped = shell(clients[1])
        assert scraped.returncode == 0 and "quantd_build_info" in scraped.stdout, scraped.stderr
    finally:
        process.terminate()
        assert process.wait(60) == 0
