"""quantctl top: the server's status in a terminal."""

import json
import re
import time

import pytest
from certificates import Authority
from quantctl import quantctl
from support import quantize


def test_a_look_shows_what_was_called(start):
    server = start()
    server.stub.Quantize.future(quantize([1.0], scale=[1.0, 2.0]), timeout=10).exception()
    code, out, _ = quantctl("top", server.http)
    assert code == 0 and re.match(rf"quantd \S+ at {server.http}: serving, ", out)
    assert [line.split()[0] for line in out.splitlines()[out.splitlines().index("") + 1 :]] == ["METHOD", "Quantize"]
    code, out, _ = quantctl("top", server.http, "--json")
    status = json.loads(out)
    (quantized,) = [of for of in status["methods"] if of["method"] == "Quantize"]
    assert code == 0 and quantized["codes"] == {"InvalidArgument": 1} and quantized["started"] == 1
    assert len(quantized["handling"]["buckets"]) == len(status["bounds_seconds"]) + 1


def test_with_tls_and_a_token(start, tmp_path):
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.sign("quantd")
    token = tmp_path / "token"
    token.write_text("# of tests\nsecret-token-of-32-characters-000\n")
    server = start(f"--tls_cert={certificate}", f"--tls_key={key}", f"--auth_token_file={token}")
    flags = [f"--tls_ca={authority.file}", f"--auth_token_file={token}"]
    address = f"localhost:{server.http.rsplit(':')[-1]}"
    for where in server.http, address:
        code, out, error = quantctl("top", where, "--json", *flags)
        assert code == 0, error
        assert 86400 < json.loads(out)["access"]["certificate_expires"] - time.time() < 2 * 86400 + 60  # signed for two days
    other = Authority(tmp_path / "other", name="another")
    for wrong, said in [(flags[:1], "token"), ([f"--tls_ca={other.file}", flags[1]], "certificate verify failed")]:
        code, out, error = quantctl("top", server.http, "--json", *wrong)
        assert (code, out) == (1, "") and said in error and len(error.splitlines()) == 1


@pytest.mark.parametrize("what", ["grpc", "nobody", "off"])
def test_what_is_no_status_page_is_said_so(start, what):
    server = start("--status_page=off")
    address = {"grpc": server.address, "nobody": "127.0.0.1:1", "off": server.http}[what]
    code, out, error = quantctl("top", address)
    assert (code, out) == (1, "") and address in error and len(error.splitlines()) == 1
