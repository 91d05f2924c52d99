"""Quantizes a weight matrix in several ways and shows what each costs in accuracy.

    python quantize_weights.py [--address 127.0.0.1:50051]
"""

import argparse

import numpy as np

import quantd

WAYS = {
    "uint8, one scale": dict(output_type="uint8"),
    "int8, a scale a row": dict(output_type="int8", axis=0, symmetry="symmetric"),
    "int4, blocks of 32": dict(output_type="int4", axis=1, block_size=32, symmetry="symmetric"),
    "float8_e4m3fn, tiles of 128x128": dict(output_type="float8_e4m3fn", block_shape=[128, 128]),
    "MXFP4": dict(output_type="float4_e2m1fn", scale_type="float8_e8m0fnu", axis=1, block_size=32),
    "NVFP4": dict(output_type="float4_e2m1fn", scale_type="float8_e4m3fn", axis=1, block_size=16),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", default="127.0.0.1:50051", help="the server (default: %(default)s)")
    arguments = parser.parse_args()
    weights = np.random.default_rng(1).standard_normal((256, 512)).astype(np.float32)

    with quantd.Client(arguments.address, timeout=30) as client:
        info = client.info()
        print(f"quantd {info.version}, {info.target}, {info.threads} threads")
        print(f"{'':34}{'bytes':>9}{'SQNR':>9}{'largest error':>15}")
        with client.stream() as stream:
            answers = {
                name: stream.dynamic_quantize(weights, report_error=True, **options) for name, options in WAYS.items()
            }
            for name, answer in answers.items():
                result = answer.result()
                stored = quantd.data_type(result.y.dtype).byte_size(result.y.size) + result.scale.nbytes
                print(f"{name:34}{stored:9}{result.error.sqnr_db:6.1f} dB{result.error.max_absolute_error:15.4f}")

        rows = client.dynamic_quantize(weights, output_type="int8", axis=0, symmetry="symmetric")
        back = client.dequantize(rows.y, rows.scale, axis=0).y
        print(f"int8 rows and back: mean |difference| {np.abs(back - weights).mean():.5f}")
        try:
            client.quantize(weights, np.ones(3, np.float32), axis=0)
        except quantd.InvalidArgumentError as error:
            print(f"a wrong scale: {error.field}: {error.message}")


if __name__ == "__main__":
    main()
