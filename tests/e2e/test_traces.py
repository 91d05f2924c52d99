"""Calls that are traced: a line of OTLP/JSON each in --trace_file."""

import json
import re
import time


from support import pb, quantize, wait_for

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SAMPLED = (("traceparent", f"00-{TRACE_ID}-00f067aa0ba902b7-01"),)


def traced(start, path, *flags):
    """A server that traces, and a function that waits for `count` spans and returns them all."""
    server = start(f"--trace_file={path}", *flags)

    def spans(count):
        lines = wait_for(lambda: len(lines := path.read_text().splitlines()) >= count and lines, 20, f"{count} spans")
        return [span for line in lines for of in json.loads(line)["resourceSpans"] for scope in of["scopeSpans"] for span in scope["spans"]]

    return server, spans


def attributes(span):
    return {a["key"]: a["value"]["stringValue"] if "stringValue" in a["value"] else int(a["value"]["intValue"]) for a in span["attributes"]}


def test_a_sampled_call_is_a_span(start, tmp_path):
    server, spans = traced(start, tmp_path / "spans")
    before = time.time_ns()
    server.stub.Quantize(quantize([1.0]), timeout=10)  # not sampled
    server.stub.Quantize(quantize([1.0, 2.0, 3.0]), timeout=10, metadata=SAMPLED)
    (span,) = spans(1)
    assert span["traceId"] == TRACE_ID and span["parentSpanId"] == "00f067aa0ba902b7"
    assert span["name"] == "quantd.v1.QuantizationService/Quantize" and "status" not in span
    assert before - 10**9 < int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"]) < time.time_ns() + 10**9
    known = attributes(span)
    assert known["rpc.system"] == "grpc" and known["rpc.method"] == "Quantize" and known["rpc.grpc.status_code"] == 0
    assert (known["quantd.elements"], known["quantd.input_type"], known["quantd.output_type"]) == (3, "FLOAT", "UINT8")
    assert (known["quantd.bytes_in"], known["quantd.bytes_out"]) == (12, 3)
    assert re.fullmatch(r"decode=\d+,queue=\d+,kernel=\d+,encode=\d+", known["quantd.timing_us"])
    assert [event["name"] for event in span["events"]] == ["decoded", "kernel begins", "kernel ends"]
    times = [int(event["timeUnixNano"]) for event in span["events"]]
    assert times == sorted(times) and times[-1] <= int(span["endTimeUnixNano"])
    wait_for(lambda: server.metrics()["quantd_spans_exported_total"] == 1, 10, "it is counted")


def test_errors_and_streams(start, tmp_path):
    server, spans = traced(start, tmp_path / "spans", "--log_format=json", "--max_message_bytes=1024")
    server.stub.Quantize.future(quantize([1.0], scale=[1.0, 2.0]), timeout=10, metadata=SAMPLED).exception()
    server.stub.Dequantize.future(pb.DequantizeRequest(x=quantize([0.0] * 4096).x), timeout=10, metadata=SAMPLED).exception()
    items = [pb.StreamRequest(id=i, quantize=quantize([1.0, 2.0])) for i in range(5)]
    assert len(list(server.stub.Stream(iter(items), timeout=10, metadata=SAMPLED))) == 5
    server.stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=10, metadata=SAMPLED)
    by_method = {attributes(span)["rpc.method"]: span for span in spans(4)}
    assert set(by_method) == {"Quantize", "Dequantize", "Stream", "GetServerInfo"}
    failed = attributes(by_method["Quantize"])
    assert failed["rpc.grpc.status_code"] == 3 and "quantd.elements" not in failed
    assert "status" not in by_method["Quantize"]  # the client's fault
    assert by_method["Dequantize"]["status"] == {"code": 2} and attributes(by_method["Dequantize"])["quantd.reason"] == "MESSAGE_TOO_LARGE"
    assert attributes(by_method["Stream"])["quantd.elements"] == 10
    line = wait_for(lambda: [line for line in server.log().splitlines() if "call failed" in line], 10, "a line")[0]
    assert f'"trace_id":"{TRACE_ID}"' in line
