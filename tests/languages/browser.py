#!/usr/bin/env python3
"""browser.py URL: what the scripts of a page would send through Envoy (deploy/front/envoy.yaml), as JSON and as gRPC-Web. Prints
lines 'pass|fail NAME WHY', separated by tabs. Standard library only."""

import json
import struct
import sys
import urllib.error
import urllib.request

ORIGIN = "http://localhost:3000"  # the one that envoy.yaml allows
METHOD = "/quantd.v1.QuantizationService/DynamicQuantize"


def ask(url, body=None, method="POST", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url + METHOD, body, named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def field(number, value):
    return bytes([number << 3 | 2, len(value)]) + value


def request(*floats):
    """A DynamicQuantizeRequest of FLOAT, symmetric to INT8, in gRPC-Web's frame."""
    x = b"\x08\x01" + field(2, bytes([len(floats)])) + field(3, struct.pack(f"<{len(floats)}f", *floats))
    message = field(1, x) + b"\x20\x03" + b"\x48\x02"
    return b"\0" + struct.pack(">I", len(message)) + message


def frames(body):
    """{False: message, True: trailers} of a gRPC-Web answer."""
    parts = {}
    while body:
        (length,) = struct.unpack(">I", body[1:5])
        parts[bool(body[0] & 0x80)] = body[5 : 5 + length]
        body = body[5 + length :]
    return parts


def json_values(url):
    x = {"data_type": "DATA_TYPE_FLOAT", "shape": [3], "float_values": {"values": [-1, 0, 1]}}
    asked = {"x": x, "output_type": "DATA_TYPE_INT8", "symmetry": "SYMMETRY_SYMMETRIC", "output_encoding": "TENSOR_ENCODING_VALUES"}
    status, _, body = ask(url, json.dumps(asked).encode(), content_type="application/json")
    assert (status, json.loads(body)["y"]["int_values"]["values"]) == (200, ["-127", "0", "127"]), (status, body)


def json_error(url):
    x = {"data_type": "DATA_TYPE_FLOAT", "shape": [4], "float_values": {"values": [-1, 0, 1]}}
    status, headers, _ = ask(url, json.dumps({"x": x}).encode(), content_type="application/json")
    assert status == 400 and "4 elements" in headers["grpc-message"], (status, headers.items())
    status, _, _ = ask(url, b'{"y": 1}', content_type="application/json")
    assert status == 400, status


def grpc_web(url):
    status, headers, body = ask(url, request(-1, 0, 1), content_type="application/grpc-web+proto", x_grpc_web="1", origin=ORIGIN)
    parts = frames(body)
    assert status == 200 and b"\x81\x00\x7f" in parts[False] and b"grpc-status:0" in parts[True], (status, body)
    assert headers["access-control-allow-origin"] == ORIGIN, headers.items()


def grpc_web_error(url):
    status, headers, body = ask(url, request(-1, float("nan")), content_type="application/grpc-web+proto", x_grpc_web="1", origin=ORIGIN)
    said = frames(body).get(True, b"").decode() or str(headers)
    assert status == 200 and "x[1] is nan" in said, (status, headers.items(), body)


def pages(url):
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "content-type,x-grpc-web"}
    status, headers, _ = ask(url, method="OPTIONS", origin=ORIGIN, **asked)
    assert status == 200 and "x-grpc-web" in headers["access-control-allow-headers"], (status, headers.items())
    _, headers, _ = ask(url, method="OPTIONS", origin="http://elsewhere", **asked)
    assert headers["access-control-allow-origin"] is None, headers.items()


def main():
    cases = {
        "values as JSON": json_values, "errors of JSON": json_error, "gRPC-Web": grpc_web, "errors of gRPC-Web": grpc_web_error,
        "only pages that are named": pages,
    }  # fmt: skip
    for name, case in cases.items():
        try:
            case(sys.argv[1])
        except Exception as error:  # any error belongs to this case
            print("fail", name, f"{type(error).__name__}: {error}".replace("\n", " ").replace("\t", " ")[:300], sep="\t")
        else:
            print("pass", name, "", sep="\t")


if __name__ == "__main__":
    main()
