"""quantctl health for a server with TLS, as in a container: without an address it trusts the certificate that the environment names for the server,
and no other."""

import subprocess

import pytest
from quantctl import quantctl


def certificate(folder, name, host="service.example", days="30"):
    """A self-signed certificate for a name that no client uses: paths of the certificate and of its key."""
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", days, "-subj", f"/CN={host}"]
    subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    return {name: certificate(folder, name) for name in ("own", "other")}


def ask(monkeypatch, port, cert=None, key=None, *arguments, **environment):
    for name in ("QUANTD_TLS_CERT", "QUANTD_TLS_KEY", "QUANTD_TLS_CA"):
        monkeypatch.delenv(name, raising=False)
    chosen = {"QUANTD_LISTEN": f"[::]:{port}", "QUANTD_TLS_CERT": cert, "QUANTD_TLS_KEY": key, **environment}
    for name, value in chosen.items():
        if value is not None:
            monkeypatch.setenv(name, str(value))
    return quantctl("health", *arguments)


@pytest.mark.parametrize("mutual", [False, True])
def test_beside_quantd_itself(start, files, monkeypatch, tmp_path, mutual):
    """The server also requires tokens; health needs none."""
    tokens = tmp_path / "tokens"
    tokens.write_text("some-token")
    cert, key = files["own"]
    flags = [f"--tls_cert={cert}", f"--tls_key={key}", f"--auth_token_file={tokens}", *([f"--tls_client_ca={cert}"] if mutual else [])]
    port = start(*flags).address.rsplit(":", 1)[1]
    assert ask(monkeypatch, port, cert, key) == (0, "SERVING\n", "")
    # A proxy is for other machines only.
    assert ask(monkeypatch, port, cert, key, https_proxy="http://127.0.0.1:1", http_proxy="http://127.0.0.1:1")[0] == 0
    code, out, error = ask(monkeypatch, port, *files["other"])
    assert (code, out, error.count("\n")) == (1, "", 1) and "cannot reach" in error
    assert ask(monkeypatch, port)[0] == 1
