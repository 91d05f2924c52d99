"""/status.json: its names are documented, and its figures are those of /metrics."""

import base64
import json
import re
import urllib.error
import urllib.request

from support import ROOT, quantize, wait_for


def status(server):
    code, text = server.get("/status.json")
    assert code == 200
    return json.loads(text)


def test_every_name_is_in_the_manual(server):
    table = (ROOT / "deploy/OPERATIONS.md").read_text().split("## Status page\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.M)
    assert set(status(server)) == {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_figures_are_those_of_the_metrics(start):
    server = start("--max_message_bytes=1024", "--max_connections=70")
    for _ in range(3):
        server.stub.Quantize(quantize([1.0, 2.0]), timeout=10)
    for request in quantize([1.0], scale=[1.0, 2.0]), quantize([0.0] * 4096):
        server.stub.Quantize.future(request, timeout=10).exception()
    shown = wait_for(lambda: (now := status(server))["methods"][0]["open"] == 0 and now, 10, "all calls are over")
    method = shown["methods"][0]
    assert (method["method"], method["started"], method["in_bytes"], method["out_bytes"]) == ("Quantize", 5, 24, 6)
    assert method["codes"] == {"OK": 3, "InvalidArgument": 1, "ResourceExhausted": 1}
    assert method["handling"]["count"] == method["handling"]["buckets"][-1] == 5
    assert shown["refused"] == {"message_too_large": 1} and shown["limits"]["max_connections"] == 70
    assert shown["now"]["connections"] == 1 and shown["waiting"] == {"to_be_received": 0, "for_memory": 0, "for_a_core": 0}
    assert (shown["state"], shown["access"]["tls"], shown["access"]["certificate_expires"]) == ("serving", False, 0)


def test_a_drain_is_shown(start):
    server = start("--lame_duck_seconds=5")
    server.signal()
    wait_for(lambda: status(server)["state"] == "draining", 4, "the drain")


def test_the_token_is_asked_for_and_the_page_can_be_off(start, tmp_path):
    (tmp_path / "tokens").write_text("secret-token-of-32-characters-000\n")
    server = start(f"--auth_token_file={tmp_path}/tokens")

    def get(path, authorization=None):
        request = urllib.request.Request(f"http://{server.http}{path}", headers={"Authorization": authorization} if authorization else {})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, b""

    def basic(password):
        return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()

    for path in "/", "/status.json":
        code, headers, _ = get(path)
        assert code == 401 and any(value.startswith("Basic ") for value in headers.get_all("WWW-Authenticate"))
        assert get(path, basic("another-token-of-32-characters-00"))[0] == get(path, "Basic !")[0] == 401
        assert get(path, basic("secret-token-of-32-characters-000"))[0] == get(path, "Bearer secret-token-of-32-characters-000")[0] == 200
    _, headers, body = get("/", basic("secret-token-of-32-characters-000"))
    assert len(body) < 40_000 and "default-src 'none'" in headers["Content-Security-Policy"]
    assert json.loads(get("/status.json", basic("secret-token-of-32-characters-000"))[2])["access"]["tokens"] is True
    server = start("--status_page=off")
    assert get("/")[0] == get("/status.json")[0] == 404 and server.get("/metrics")[0] == 200
