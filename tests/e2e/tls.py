"""A server with TLS, and clients of it: gRPC, sockets, the openssl command."""

import os
import shutil
import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import grpc
import pytest

from certificates import Authority, serial
from support import Server, pb_grpc, wait_for

OPTIONS = [
    ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1),
]  # fmt: skip


class Files:
    """The files of a server with TLS, in one folder, and the authorities behind them."""

    def __init__(self, folder, **how):
        self.folder = folder
        self.servers, self.clients = Authority(folder / "servers", "servers"), Authority(folder / "clients", "clients")
        self.strangers = Authority(folder / "strangers", "strangers")
        self.cert, self.key = folder / "tls.crt", folder / "tls.key"
        self.put(*self.servers.sign("server", **how))
        self.client = self.clients.sign("client", hosts=(), usage="clientAuth")

    def put(self, cert, key):
        """Replaces the server's files, each in one step."""
        for source, target in ((cert, self.cert), (key, self.key)):
            part = target.with_suffix(".part")
            shutil.copy(source, part)
            os.replace(part, target)

    @property
    def flags(self):
        return [f"--tls_cert={self.cert}", f"--tls_key={self.key}"]

    @property
    def mutual(self):
        return [*self.flags, f"--tls_client_ca={self.clients.file}"]

    def context(self, client=None, protocols=("h2",), ca=None, check=True):
        """The context for sockets. `client`: (certificate, key)."""
        context = ssl.create_default_context(cafile=ca or self.servers.file)
        if not check:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if client:
            context.load_cert_chain(*client)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def credentials(self, client=None, ca=None):
        read = [path.read_bytes() if path else None for path in (ca or self.servers.file, *reversed(client or (None, None)))]
        return grpc.ssl_channel_credentials(*read)


class TlsServer(Server):
    """Its `stub` and `get` use TLS."""

    def __init__(self, folder, files, *flags, client=None, **arguments):
        self.files, self.client, self.token = files, client, None
        super().__init__(folder, *flags, **arguments)

    def channel(self, address=None, credentials=None, options=()):
        credentials = credentials or self.files.credentials(self.client)
        channel = grpc.secure_channel(address or self.address, credentials, options=[*OPTIONS, *options])
        self.channels.append(channel)
        return channel

    def new_stub(self, **arguments):
        return pb_grpc.QuantizationServiceStub(self.channel(**arguments))

    def get(self, path, client="own", token=None):
        client = self.client if client == "own" else client
        request = urllib.request.Request(f"https://{self.http}{path}")
        token = token or self.token
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=10, context=self.files.context(client, ("http/1.1",))) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def connect(self, context=None, timeout=20, http=False):
        """A socket with TLS on it."""
        host, port = (self.http if http else self.address).rsplit(":", 1)
        raw = socket.create_connection((host, int(port)), timeout=timeout)
        return (context or self.files.context(self.client)).wrap_socket(raw, server_hostname="localhost")

    def raw(self, timeout=20, http=False):
        host, port = (self.http if http else self.address).rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=timeout)

    def refusals(self):
        return [line for line in self.log().splitlines() if "TLS handshake refused reason" in line]

    def wait_for_log(self, text, seconds=20):
        return wait_for(lambda: [line for line in self.log().splitlines() if text in line], seconds, f"in the log: {text}")

    def served_serial(self, **arguments):
        """The hash of the certificate that a new connection gets."""
        with self.connect(**arguments) as connection:
            der = connection.getpeercert(binary_form=True)
        file = self.folder / "shown.crt"
        file.write_text(ssl.DER_cert_to_PEM_cert(der))
        return serial(file)


def s_client(server, *arguments, text="", timeout=20):
    """The output of `openssl s_client` for it: (exit code, everything)."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", server.address, *map(str, arguments)],
        input=text, capture_output=True, text=True, timeout=timeout, errors="replace", check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def own_files(tmp_path):
    """Files that a test may replace."""
    folder = tmp_path / "tls"
    folder.mkdir()
    return Files(folder)


@pytest.fixture
def start_tls(tmp_path_factory):
    servers = []

    def begin(files, *flags, **arguments):
        servers.append(TlsServer(tmp_path_factory.mktemp("server"), files, *flags, **arguments))
        return servers[-1]

    yield begin
    for running in servers:
        if running.process.poll() is None:
            assert running.stop() == 0, running.log()[-4000:]


def hang_up(server):
    server.signal(signal.SIGHUP)
