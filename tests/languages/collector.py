#!/usr/bin/env python3
"""collector.py QUANTD JAEGER FOLDER: quantd's spans arrive at Jaeger, whose receiver is the OpenTelemetry collector's, and its query API returns them
as quantd meant them. grpcurl makes the calls. Prints lines "pass|fail NAME WHY", separated by tabs."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

CALL = "quantd.v1.QuantizationService/DynamicQuantize"
GOOD = {"x": {"data_type": "DATA_TYPE_FLOAT", "shape": [3], "float_values": {"values": [-1, 0, 1]}}}


def free_ports(count):
    """Jaeger accepts numbers only; the kernel picked these, and they were just released."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)
    return value


def start_jaeger(program, folder):
    """(process, the address for OTLP over HTTP, the address for queries)."""
    otlp, query, *others = free_ports(8)
    flags = ["query.grpc-server", "collector.grpc-server", "collector.http-server", "collector.otlp.grpc", "http-server", "admin.http"]
    arguments = [f"--{flag}.host-port=127.0.0.1:{port}" for flag, port in zip(flags, others)]
    arguments += [f"--collector.otlp.http.host-port=127.0.0.1:{otlp}", f"--query.http-server.host-port=127.0.0.1:{query}"]
    arguments += ["--collector.otlp.enabled=true", *(f"--processor.{name}.server-host-port=127.0.0.1:0" for name in (
        "jaeger-binary", "jaeger-compact", "zipkin-compact"))]
    log = open(folder / "jaeger.log", "w")
    process = subprocess.Popen([program, *arguments], stdout=log, stderr=log, env={**os.environ, "SPAN_STORAGE_TYPE": "memory"})
    return process, f"http://127.0.0.1:{otlp}", f"http://127.0.0.1:{query}"


def start_quantd(program, folder, *flags):
    ready = folder / "quantd.json"
    ready.unlink(missing_ok=True)
    log = open(folder / "quantd.log", "w")
    addresses = ["--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0"]
    process = subprocess.Popen([program, *addresses, f"--ready_file={ready}", *flags], stdout=log, stderr=log)
    wait_for(lambda: ready.exists() or process.poll() is not None, 30, "quantd's start")
    return process, json.loads(ready.read_text())["grpc"][0]


def call(address, request, trace=""):
    header = ["-H", f"traceparent: 00-{trace}-00f067aa0ba902b7-01"] if trace else []
    command = ["grpcurl", "-plaintext", "-max-time", "60", *header, "-d", json.dumps(request), address, CALL]
    return subprocess.run(command, capture_output=True, text=True).returncode


def spans_of(query, trace):
    try:
        with urllib.request.urlopen(f"{query}/api/traces/{trace}", timeout=10) as answer:
            return [(span, found["processes"]) for found in json.load(answer)["data"] for span in found["spans"]]
    except (urllib.error.URLError, ConnectionError):
        return []


def attributes(span):
    return {tag["key"]: tag["value"] for tag in span["tags"]}


def a_sampled_call(address, query):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    assert call(address, GOOD, trace) == 0
    ((span, processes),) = wait_for(lambda: spans_of(query, trace), 30, "the span")
    known = attributes(span)
    assert span["operationName"] == CALL and processes[span["processID"]]["serviceName"] == "quantd", span
    assert span["references"][0]["spanID"] == "00f067aa0ba902b7" and known["span.kind"] == "server", span
    assert (known["quantd.elements"], known["quantd.input_type"], known["quantd.output_type"]) == (3, "FLOAT", "UINT8"), known
    assert known["rpc.grpc.status_code"] == 0 and "error" not in known, known
    assert len(span["logs"]) == 3 and 0 < span["duration"] < 60e6, span


def a_call_without_a_caller(address, query):
    assert call(address, GOOD) == 0
    wait_for(lambda: len(traces(query)) >= 2, 30, "a trace of its own")


def a_failed_call(address, query):
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert call(address, {}, trace) != 0
    ((span, _),) = wait_for(lambda: spans_of(query, trace), 30, "the span")
    assert attributes(span)["rpc.grpc.status_code"] == 3, span


def a_thousand(address, query):
    """By 8 programs at once, and none is lost: the receiver acknowledges each batch."""
    command = ["ghz", "--insecure", "--call", CALL.replace("/", "."), "-d", json.dumps(GOOD), "-n", "1000", "-c", "8", address]
    subprocess.run(command, check=True, capture_output=True)
    wait_for(lambda: len(traces(query)) >= 1003, 60, "1,000 traces")


def traces(query):
    with urllib.request.urlopen(f"{query}/api/traces?service=quantd&limit=1500&lookback=1h", timeout=30) as answer:
        return json.load(answer)["data"] or []


def main():
    quantd, jaeger, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    collector, otlp, query = start_jaeger(jaeger, folder)
    server = None
    try:
        wait_for(lambda: answers(query), 60, "Jaeger's start")
        server, address = start_quantd(quantd, folder, f"--otlp_endpoint={otlp}", "--trace_sample_ratio=1")
        for case in a_sampled_call, a_call_without_a_caller, a_failed_call, a_thousand:
            try:
                case(address, query)
                print("pass", case.__name__.replace("_", " "), "", sep="\t")
            except Exception as error:  # noqa: BLE001  # told in the case's line
                print("fail", case.__name__.replace("_", " "), " ".join(str(error).split())[:500], sep="\t")
    finally:
        for process in (server, collector):
            if process:
                process.terminate()
                process.wait()


def answers(query):
    try:
        return urllib.request.urlopen(f"{query}/api/services", timeout=10).status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


if __name__ == "__main__":
    main()
