"""Certificates made on the fly with the openssl command: an authority, and certificates that it signs."""

import subprocess
import time
from pathlib import Path


def _openssl(*arguments, text=None):
    done = subprocess.run(["openssl", *map(str, arguments)], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Authority:
    """Signs certificates; `file` contains its own."""

    def __init__(self, folder, name="test authority"):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key, self.file = self.folder / "ca.key", self.folder / "ca.crt"
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self.key, "-out", self.file,
        )  # fmt: skip
        self.made = 0

    def sign(self, name, hosts=("DNS:localhost", "IP:127.0.0.1"), usage="serverAuth", kind="ec", days=2, expired=False):
        """(certificate file, key file) with a new key. `kind`: ec, or rsa:BITS. Expired ones ended an hour ago."""
        self.made += 1
        base = self.folder / f"{name}-{self.made}"
        key, request, certificate, extensions = (base.with_suffix(s) for s in (".key", ".csr", ".crt", ".ext"))
        how = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ec" else ["-newkey", kind]
        _openssl("req", *how, "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        names = f"subjectAltName={','.join(hosts)}\n" if hosts else ""
        extensions.write_text(f"basicConstraints=CA:FALSE\n{names}extendedKeyUsage={usage}\n")
        if expired:
            self._sign_expired(request, certificate, extensions)
        else:
            _openssl(
                "x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.key, "-days", days, "-extfile", extensions,
                "-set_serial", self.made + 0x1000, "-out", certificate,
            )  # fmt: skip
        return certificate, key

    def _sign_expired(self, request, certificate, extensions):
        """`openssl x509` cannot set an end in the past; `openssl ca` can."""
        folder = certificate.with_suffix(".d")
        folder.mkdir()
        (folder / "index").touch()
        (folder / "serial").write_text(f"{self.made + 0x1000:04X}\n")
        config = folder / "config"
        config.write_text(
            f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index\nserial={folder}/serial\nnew_certs_dir={folder}\n"
            "default_md=sha256\npolicy=p\ncopy_extensions=none\n[p]\ncommonName=supplied\n"
        )
        stamp = lambda seconds: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))  # noqa: E731
        _openssl(
            "ca", "-batch", "-config", config, "-in", request, "-cert", self.file, "-keyfile", self.key, "-extfile", extensions,
            "-startdate", stamp(-7200), "-enddate", stamp(-3600), "-notext", "-out", certificate,
        )  # fmt: skip


def serial(certificate_file):
    """The hash, as the server logs it."""
    return _openssl("x509", "-in", certificate_file, "-noout", "-serial").strip().partition("=")[2]
