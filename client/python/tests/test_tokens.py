"""Bearer tokens: where a client finds them, and to whom it sends them. What a server does with them: tests/e2e/test_tokens.py."""

import os

import grpc
import pytest

from quantd import messages
from both_clients import Async, Sync
from raw_server import RawServer

Y = messages.QuantizeResponse(y=messages.Tensor(data_type=2, shape=[4], raw_data=b"\1\1\1\1"))


BOTH = pytest.mark.parametrize("kind", [Sync, Async])


def write(path, text):
    """Replaces a file in one step, as secrets are rotated."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)
    return str(path)


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "mine"


# ---- What is sent, recorded by a server


class Hearing(RawServer):
    """Answers calls, and keeps the authorization of each."""

    def __init__(self, **arguments):
        self.heard = []

        def quantize(_, context):
            self._hear(context)
            return Y.SerializeToString()

        def stream(items, context):
            self._hear(context)
            for item in items:
                number = messages.StreamRequest.FromString(item).id
                yield messages.StreamResponse(id=number, quantize=Y).SerializeToString()

        def information(_, context):
            self._hear(context)
            return messages.GetServerInfoResponse(version="hearing").SerializeToString()

        super().__init__(Quantize=quantize, Stream=stream, GetServerInfo=information, **arguments)

    def _hear(self, context):
        self.heard.append([value for name, value in context.invocation_metadata() if name == "authorization"])


@BOTH
def test_the_first_line_that_counts_is_the_token(kind, mine):
    write(mine, "# of the deployment\n\n  \t first-token== \r\nsecond-token\n")
    with Hearing() as server, kind(server.address, auth_token_file=str(mine)) as client:
        client.quantize()
        client.info()
        assert server.heard == [["Bearer first-token=="]] * 2


@BOTH
def test_the_environment_names_the_file_and_the_argument_another(kind, mine, tmp_path, monkeypatch):
    with Hearing() as server:
        with kind(server.address) as client:
            client.quantize()
        monkeypatch.setenv("QUANTD_AUTH_TOKEN_FILE", write(mine, "env-token"))
        with kind(server.address) as client:
            client.quantize()
        with kind(server.address, auth_token_file=write(tmp_path / "given", "given-token")) as client:
            client.quantize()
        monkeypatch.setenv("QUANTD_AUTH_TOKEN_FILE", "")
        with kind(server.address) as client:
            client.quantize()
        assert server.heard == [[], ["Bearer env-token"], ["Bearer given-token"], []]


@BOTH
def test_the_next_call_has_the_token_of_the_file_that_was_replaced(kind, mine):
    with Hearing() as server, kind(server.address, auth_token_file=write(mine, "old-token")) as client:
        client.quantize()
        write(mine, "new-token")
        client.quantize()
        with open(mine, "w") as file:  # in place, with another length
            file.write("in-place-token")
        client.quantize()
        assert [one for one, in server.heard] == [
            "Bearer old-token", "Bearer new-token", "Bearer in-place-token"]


@BOTH
def test_a_file_that_is_gone_or_holds_none_leaves_the_old_token(kind, mine):
    with Hearing() as server, kind(server.address, auth_token_file=write(mine, "old-token")) as client:
        for text in (None, "", "# none", "two words", "b\u00e4d"):
            mine.unlink() if text is None else write(mine, text)
            client.quantize()
        write(mine, "new-token")
        client.quantize()
        assert [one for one, in server.heard] == ["Bearer old-token"] * 5 + ["Bearer new-token"]


@BOTH
def test_files_without_a_token(kind, mine):
    with pytest.raises(FileNotFoundError, match=f"auth_token_file: .*{mine}"):
        kind("localhost", auth_token_file=str(mine))
    with pytest.raises(IsADirectoryError, match="auth_token_file"):
        kind("localhost", auth_token_file=str(mine.parent))
    for text in ("", "# none\n\n", "two words", "b\u00e4d", "nul\0"):
        with pytest.raises(ValueError, match=f"auth_token_file: {mine} holds no token") as caught:
            kind("localhost", auth_token_file=write(mine, text))
        assert text.strip("# \n") == "" or text not in str(caught.value)


# ---- Where it is sent


@BOTH
@pytest.mark.parametrize("address", [
    "10.255.255.1", "server.example:1", "dns:///server.example", "[2001:db8::1]:1", "0.0.0.0:1", "127.0.0.1.example:1",
    "localhost.example", "ipv4:127.0.0.1:1,10.255.255.1:1", "xds:///service"])
def test_no_token_in_clear_to_another_machine(kind, address, mine, monkeypatch):
    write(mine, "secret-token")
    why = "auth_token_file: .*is another machine and there is no TLS.*tls_ca, or allow_insecure_token"
    with pytest.raises(ValueError, match=why) as caught:
        kind(address, auth_token_file=str(mine))
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("QUANTD_AUTH_TOKEN_FILE", str(mine))
    with pytest.raises(ValueError, match=why):
        kind(address)
    kind(address, allow_insecure_token=True).__exit__()
    if "xds" not in address:
        kind(address, credentials=grpc.ssl_channel_credentials()).__exit__()
