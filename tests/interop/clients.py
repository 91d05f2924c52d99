"""gRPC's cases (interop-test-descriptions), the clients that make them, and how to start each."""

import pathlib
import subprocess

# Without those that need Google's credentials, a caching proxy or a balancer.
CASES = (
    "empty_unary", "large_unary", "client_compressed_unary", "server_compressed_unary", "client_streaming", "client_compressed_streaming",
    "server_streaming", "server_compressed_streaming", "ping_pong", "empty_stream", "custom_metadata", "status_code_and_message",
    "special_status_message", "unimplemented_method", "unimplemented_service", "cancel_after_begin", "cancel_after_first_response",
    "timeout_on_sleeping_server", "very_large_request", "pick_first_unary", "rpc_soak", "channel_soak",
)
# Those that a server without TestService passes as well: quantd itself.
SHIPPED = ("unimplemented_method", "unimplemented_service")
SOAK = {"rpc_soak": 10000, "channel_soak": 1000}


def soak_flags(case):
    if case not in SOAK:
        return []
    return [
        f"--soak_iterations={SOAK[case]}", "--soak_max_failures=0", "--soak_per_iteration_max_acceptable_latency_ms=10000",
        "--soak_overall_timeout_seconds=100"
    ]


class Client:
    """A client with the flags of gRPC's own clients."""

    name = ""
    lacks = ()  # the cases that it does not have
    lacks_tls = ()  # over TLS only
    soak_sizes = ["--soak_request_size=1000", "--soak_response_size=1000"]

    def __init__(self, folder):
        self.folder = folder

    def prepare(self, certificates):
        """Everything that it needs besides ca.pem."""

    def lacks_case(self, case, tls):
        return case in self.lacks or (tls is not None and case in self.lacks_tls)

    def command(self, case, port, tls):
        """`tls`: the folder of certificates, or None."""
        flags = [f"--server_port={port}", f"--test_case={case}", *soak_flags(case), *(self.soak_sizes if case in SOAK else [])]
        if tls is None:
            return [*self.program(tls), "--server_host=127.0.0.1", "--use_tls=false", *flags]
        return [*self.program(tls), "--server_host=127.0.0.1", "--server_host_override=localhost", "--use_tls=true", *self.authority(tls), *flags]

    def program(self, tls):
        raise NotImplementedError

    def authority(self, tls):
        raise NotImplementedError

    def environment(self, tls):
        return {}


class Go(Client):
    name = "go"
    lacks = ("client_compressed_unary", "server_compressed_unary", "client_compressed_streaming", "server_compressed_streaming", "very_large_request")

    def program(self, tls):
        return ["interop-client"]

    def authority(self, tls):
        return ["--use_test_ca=true", f"--ca_file={tls}/ca.pem"]


class Java(Client):
    name = "java"
    flags = []

    def prepare(self, certificates):
        store = pathlib.Path(certificates) / "store.p12"
        if not store.exists():
            subprocess.run([
                "keytool", "-importcert", "-noprompt", "-alias", "interop", "-file", certificates / "ca.pem", "-keystore", store, "-storepass",
                "interop", "-storetype", "PKCS12"
            ], check=True, capture_output=True)

    def program(self, tls):
        store = [f"-Djavax.net.ssl.trustStore={tls}/store.p12", "-Djavax.net.ssl.trustStorePassword=interop"] if tls else []
        path = (self.folder / "java" / "classpath").read_text().strip()
        return ["java", "-XX:TieredStopAtLevel=1", *store, "-cp", path, "io.grpc.testing.integration.TestServiceClient", *self.flags]

    def authority(self, tls):
        return ["--use_test_ca=false"]  # except the store's


class JavaOkHttp(Java):
    name = "java-okhttp"
    flags = ["--use_okhttp=true"]


class Cpp(Client):
    """On gRPC's C core, which reads from the environment whom to trust."""

    name = "cpp"
    lacks = ("very_large_request",)
    lacks_tls = ("pick_first_unary",)  # does not look at its flag for TLS
    soak_sizes = []  # it sends 271,828 bytes and gets 314,159

    def program(self, tls):
        return [self.folder / "cpp" / "interop_client"]

    def authority(self, tls):
        return ["--use_test_ca=false"]

    def environment(self, tls):
        return {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": f"{tls}/ca.pem"} if tls else {}


def all_clients(folder):
    return [Go(folder), Java(folder), JavaOkHttp(folder), Cpp(folder)]
