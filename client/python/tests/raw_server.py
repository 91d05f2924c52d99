"""Servers of plain grpc whose answers a test defines, and the real quantd if it is built."""

import json
import os
import subprocess
import tempfile
import time
from concurrent import futures
from pathlib import Path

import grpc

from quantd import messages

ROOT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("QUANTD_BINARY", ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release") / "server" / "quantd"))
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


_HANDLERS = {"Stream": grpc.stream_stream_rpc_method_handler}


class RawServer:
    """answers: a function (bytes, context) -> bytes for each method's name; "Stream": from iterator of bytes
    to one."""

    def __init__(self, credentials=None, threads=16, port=0, host="127.0.0.1", **answers):
        self.calls = []
        self._server = grpc.server(futures.ThreadPoolExecutor(threads), options=UNLIMITED)

        def counted(name, function):
            def call(request, context):
                self.calls.append((name, time.monotonic()))
                return function(request, context)

            return call

        handlers = {}
        for name, function in answers.items():
            make = _HANDLERS.get(name, grpc.unary_unary_rpc_method_handler)
            handlers[name] = make(counted(name, function))
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(messages.SERVICE, handlers),))
        where = f"{host}:{port}"
        port = self._server.add_secure_port(where, credentials) if credentials else self._server.add_insecure_port(where)
        self.port, self.address = port, f"{host}:{port}"
        self._server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stop(None)

    def stop(self):
        self._server.stop(None)


def info(max_message_bytes=1 << 30, budget=0):
    """An answer to GetServerInfo."""
    message = messages.GetServerInfoResponse(
        version="raw", max_message_bytes=max_message_bytes, memory_budget_bytes=budget
    ).SerializeToString()
    return lambda request, context: message


class Quantd:
    """The real server."""

    def __init__(self, *flags):
        self._folder = tempfile.TemporaryDirectory()
        ready = Path(self._folder.name) / "ready.json"
        self.process = subprocess.Popen(
            [BINARY, "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0", f"--ready_file={ready}", *flags],
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 20
        while not ready.exists():
            assert self.process.poll() is None and time.monotonic() < end, f"{BINARY} did not start"
            time.sleep(0.02)
        self.address = json.loads(ready.read_text())["grpc"][0]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()
