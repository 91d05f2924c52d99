"""Draws section break_even of run.sh: plot.py RESULTS OUTPUT.svg. Throughput over the size of a tensor, DynamicQuantize of FLOAT, of
the best turn: what other programs on the machine take is not in it.

Standard library only. The picture is legible on light and on dark pages."""

import json
import math
import sys
from pathlib import Path

# Side of break_even, its name in the picture, colour, whether it is quantd.
SIDES = [
    ("in process", "quantd in process", "#3b82f6", True),
    ("shared memory", "quantd, shared memory", "#14b8a6", True),
    ("TCP", "quantd over TCP", "#22a346", True),
    ("ONNX Runtime", "ONNX Runtime in process", "#f59e0b", False),
    ("grpc.aio, ONNX Runtime", "grpc.aio and ONNX Runtime over TCP", "#ef4444", False),
]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 66, 34, 46, 52
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 15px; font-weight: 600 }
  .page { fill: #ffffff } .grid { stroke: #d0d7de } .axis { stroke: #59636e }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .page { fill: #0d1117 } .grid { stroke: #3d444d } .axis { stroke: #9198a1 } }
"""


def bytes_of(case):
    number, unit = case.split()
    return int(number) << {"KiB": 10, "MiB": 20}[unit]


def picture(rows):
    rows = [row for row in rows if bytes_of(row["case"]) <= 64 << 20]  # the same as 64 MiB
    sizes = [bytes_of(row["case"]) for row in rows]
    rates = {side: [size / row["best"][side] / 1e9 for size, row in zip(sizes, rows)] for side, *_ in SIDES}
    every = [rate for of_side in rates.values() for rate in of_side]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))

    def x(size):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log2(size / sizes[0]) / math.log2(sizes[-1] / sizes[0])

    def y(rate):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log10(rate) - low) / (high - low)

    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Throughput over size">'
    yield f'<style>{STYLE}</style>\n<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>'
    yield f'<text class="title" x="{LEFT}" y="26">DynamicQuantize of FLOAT to UINT8: GB/s of FLOAT, by size of the tensor</text>'
    for power in range(low, high + 1):
        at = y(10.0**power)
        yield f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
    for size, row in zip(sizes, rows):
        yield f'<line class="axis" x1="{x(size):.1f}" y1="{HEIGHT - BOTTOM}" x2="{x(size):.1f}" y2="{HEIGHT - BOTTOM + 5}"/>'
        yield f'<text x="{x(size):.1f}" y="{HEIGHT - BOTTOM + 21}" text-anchor="middle">{row["case"]}</text>'
    yield f'<line class="axis" x1="{LEFT}" y1="{HEIGHT - BOTTOM}" x2="{WIDTH - RIGHT}" y2="{HEIGHT - BOTTOM}"/>'
    for number, (side, name, colour, ours) in enumerate(SIDES):
        points = " ".join(f"{x(size):.1f},{y(rate):.1f}" for size, rate in zip(sizes, rates[side]))
        dashes = "" if ours else ' stroke-dasharray="6 4"'
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"{dashes}/>'
        at, left = HEIGHT - BOTTOM - 12 - 19 * (len(SIDES) - 1 - number), WIDTH - RIGHT - 300
        yield f'<line x1="{left}" y1="{at}" x2="{left + 30}" y2="{at}" stroke="{colour}" stroke-width="2.5"{dashes}/>'
        yield f'<text x="{left + 38}" y="{at + 4}">{name}</text>'
    yield "</svg>"


if __name__ == "__main__":
    results, output = map(Path, sys.argv[1:])
    output.write_text("\n".join(picture(json.loads(results.read_text())["break_even"])) + "\n")
