"""What a Python programmer would run instead of quantd: grpc.aio, protobuf, and ONNX Runtime for the arithmetic.

    aio_server.py READY_FILE MODEL

Answers DynamicQuantize of FLOAT tensors to UINT8. Parses the same messages as quantd, hands ONNX Runtime a view of the
request's bytes, and copies only what protobuf and the answer's `bytes` copy. It computes on the event loop's thread, as a
plain handler does.
"""

import asyncio
import json
import os
import sys

import grpc
import numpy
import onnxruntime
from quantd.messages import SERVICE, DynamicQuantizeRequest, DynamicQuantizeResponse

FLOAT, UINT8 = 1, 2


def main():
    ready_file, model = sys.argv[1:]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    asyncio.run(serve(session, ready_file))


async def serve(session, ready_file):
    async def dynamic_quantize(request, context):
        x = request.x
        if x.data_type != FLOAT or request.output_type not in (0, UINT8):
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "FLOAT to UINT8 only")
        values = numpy.frombuffer(x.raw_data, numpy.float32)
        y, scale, zero_point = session.run(None, {"x": values})
        response = DynamicQuantizeResponse()
        for tensor, data_type, array in (
            (response.y, UINT8, y),
            (response.y_scale, FLOAT, scale),
            (response.y_zero_point, UINT8, zero_point),
        ):
            tensor.data_type = data_type
            tensor.raw_data = array.tobytes()
        response.y.shape.extend(x.shape)
        return response

    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=unlimited)
    handler = grpc.unary_unary_rpc_method_handler(
        dynamic_quantize,
        request_deserializer=DynamicQuantizeRequest.FromString,
        response_serializer=DynamicQuantizeResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"DynamicQuantize": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    with open(ready_file + ".new", "w", encoding="utf-8") as file:
        json.dump({"grpc": [f"127.0.0.1:{port}"]}, file)
    os.rename(ready_file + ".new", ready_file)
    await server.wait_for_termination()


main()
