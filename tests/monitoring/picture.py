#!/usr/bin/env python3
"""Draws the dashboard's panels with data into one PNG: a quantd with traffic, a Prometheus, and matplotlib, so it looks
roughly and not exactly as in Grafana.

  pip install matplotlib; python tests/monitoring/picture.py [--seconds=120] [--out=build/dashboard.png]
"""

import argparse
import pathlib
import re
import tempfile
import threading
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import test_live  # noqa: E402
from support import ROOT, dashboard  # noqa: E402
from test_dashboard import VARIABLES, substituted  # noqa: E402

# The middle of a picture of two minutes; five would show one straight line.
VARIABLES["$__rate_interval"] = "10s"
SCALES = {"percentunit": (100, " %"), "bytes": (2**-20, " MiB"), "Bps": (2**-20, " MiB/s"), "s": (1000, " ms")}


def legend(target, metric):
    return re.sub(r"{{(\w+)}}", lambda match: metric.get(match[1], ""), target["legendFormat"]) or "quantd"


def number(value, unit):
    factor, suffix = SCALES.get(unit, (1, ""))
    return f"{value * factor:.4g}{suffix}"


def draw(axes, panel, prometheus, begin, end):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    axes.set_title(panel["title"], fontsize=8, loc="left")
    axes.tick_params(labelsize=6)
    if panel["type"] in ("stat", "gauge", "table"):
        axes.axis("off")
        found = [(t, s) for t in panel["targets"] for s in prometheus.query(substituted(t["expr"]))]
        if panel["type"] == "table":
            shown = [f"{k}: {v}" for _, s in found for k, v in s["metric"].items() if k != "__name__"]
            axes.text(0.02, 0.5, "\n".join(shown), fontsize=7, va="center")
        else:
            shown = "\n".join(number(float(s["value"][1]), unit) for _, s in found[:2])
            axes.text(0.5, 0.45, shown, fontsize=16, ha="center", va="center", color="#2a7d2a")
        return
    factor, suffix = SCALES.get(unit, (1, ""))
    lines = []
    for target in panel["targets"]:
        data = prometheus.ask("query_range", query=substituted(target["expr"]), start=begin, end=end, step=1)["result"]
        for series in data:
            points = [(float(at) - begin, float(value) * factor) for at, value in series["values"] if value != "NaN"]
            lines.append((legend(target, series["metric"]), points))
    if panel["type"] == "heatmap":
        lines.sort(key=lambda line: float(line[0]))
        columns = sorted({at for _, points in lines for at, _ in points})
        cumulative = [[dict(points).get(at, 0) for at in columns] for _, points in lines]
        rows = [[max(0, b - a) for a, b in zip(low, high)] for low, high in zip([[0] * len(columns), *cumulative], cumulative)]
        axes.imshow(rows, aspect="auto", origin="lower", cmap="Oranges")
        axes.set_yticks(range(0, len(lines), 4), [lines[i][0] for i in range(0, len(lines), 4)])
        return
    custom = panel["fieldConfig"]["defaults"]["custom"]
    lines.sort(key=lambda line: -max((value for _, value in line[1]), default=0))
    if custom["stacking"]["mode"] == "normal":
        columns = sorted({at for _, points in lines for at, _ in points})
        axes.stackplot(columns, [[dict(points).get(at, 0) for at in columns] for _, points in lines], alpha=0.6)
    else:
        for _, points in lines:
            axes.plot(*zip(*points) if points else ([], []), linewidth=0.8)
    axes.legend([name for name, _ in lines][:8], fontsize=4.5, loc="upper left", framealpha=0.5)
    axes.set_ylabel(suffix.strip(), fontsize=6)
    if panel["fieldConfig"]["defaults"].get("min") == 0:
        axes.set_ylim(bottom=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "dashboard.png")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folders = [pathlib.Path(folder, name) for name in ("server", "memory", "prometheus")]
        for each in folders:
            each.mkdir()
        server = test_live.Server(folders[0], *test_live.LIMITS, f"--shared_memory_dir={folders[1]}")
        prometheus = test_live.Prometheus(folders[2], [server.http])
        over = threading.Event()

        def run():
            while not over.wait(0.3):
                test_live.traffic(server)

        thread = threading.Thread(target=run)
        thread.start()
        begin = time.time() + 10
        time.sleep(10 + arguments.seconds)
        board = dashboard()
        height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in board["panels"])
        figure = plt.figure(figsize=(16, height * 0.32))
        try:
            for panel in board["panels"]:
                at = panel["gridPos"]
                left, bottom = at["x"] / 24, 1 - (at["y"] + at["h"]) / height
                if panel["type"] == "row":
                    figure.text(0.01, bottom + 0.2 / height, panel["title"], fontsize=11, weight="bold")
                    continue
                box = (left + 0.03, bottom + 1 / height, at["w"] / 24 - 0.045, (at["h"] - 2) / height)
                draw(figure.add_axes(box), panel, prometheus, begin, time.time())
        finally:
            over.set()
            thread.join()
            prometheus.stop()
            server.stop()
        figure.savefig(arguments.out, dpi=100)
    print(arguments.out)


if __name__ == "__main__":
    main()
