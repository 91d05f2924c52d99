"""core/CALIBRATION.md a second time, in numpy and plain Python: what Calibrate must answer."""

import math

import ml_dtypes
import numpy as np

INTEGERS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767), "uint4": (0, 15), "int4": (-8, 7),
            "uint2": (0, 3), "int2": (-2, 1)}
LARGEST = {"float8e4m3fn": 448.0, "float8e5m2": 57344.0, "float6e2m3": 7.5, "float6e3m2": 28.0, "float4e2m1": 6.0}


def edge(m):
    """e(m): the lower edge of magnitude bin m."""
    return 2.0**128 if m == 0x7F80 else float(np.uint32(m << 16).view(np.float32))


class Seen:
    """A channel's values."""

    def __init__(self, values):
        x = np.asarray(values).astype(np.float32).reshape(-1)
        self.non_finite = int((~np.isfinite(x)).sum())
        x = x[np.isfinite(x)] + np.float32(0)
        self.n = len(x)
        self.low, self.high = (float(x.min()), float(x.max())) if self.n else (0.0, 0.0)
        self.top = max(abs(self.low), abs(self.high))
        m = np.abs(x).view(np.uint32) >> 16
        self.most = int(np.float32(self.top).view(np.uint32)) >> 16
        self.floor = max(0, self.most - 3072)
        ids, counts = np.unique(np.where(m <= self.floor, 0, np.where(x < 0, -m.astype(int), m.astype(int))), return_counts=True)
        self.bins = {int(i): int(c) for i, c in zip(ids, counts)}

    def upper(self, bin_id):
        if bin_id == 0:
            return edge(self.floor + 1)
        return edge(bin_id + 1) if bin_id > 0 else -edge(-bin_id)


def cut(seen, t, symmetric):
    t = float(np.float32(min(t, seen.top)))
    return (-t, t) if symmetric else (min(max(seen.low, -t), t), min(max(seen.high, -t), t))


def percentile_range(seen, p, symmetric):
    def bin_after(drop, bins):
        total = 0
        for bin_id in sorted(bins, reverse=True):
            total += bins[bin_id]
            if total > drop:
                return bin_id

    if symmetric:
        magnitudes = {}
        for bin_id, count in seen.bins.items():
            magnitudes[abs(bin_id)] = magnitudes.get(abs(bin_id), 0) + count
        return cut(seen, seen.upper(bin_after(math.floor(seen.n * (100 - p) / 100), magnitudes)), True)
    drop = math.floor(seen.n * (100 - p) / 200)
    high = min(seen.upper(bin_after(drop, seen.bins)), seen.high)
    low = max(-seen.upper(bin_after(drop, {-i: c for i, c in seen.bins.items()})), seen.low)
    return low, high


def mse_range(seen, output_type, symmetric):
    def loss(c):
        found = cut(seen, edge(c + 1), symmetric)
        scale, zero_point = scale_of(found, output_type, symmetric)
        s = float(scale)
        qmin, qmax = limits(output_type, symmetric)

        def integral(u):
            nearest = min(max(float(np.rint(u)), qmin - zero_point), qmax - zero_point)
            r = u - nearest
            return nearest / 12 + r * r * r / 3

        total = 0.0
        for bin_id in sorted(seen.bins):
            if bin_id:
                near, far = edge(abs(bin_id)), edge(abs(bin_id) + 1)
                a, b = (near / s, far / s) if bin_id > 0 else (-far / s, -near / s)
                total += seen.bins[bin_id] * ((integral(b) - integral(a)) / (b - a)) * (s * s)
        return total

    least = max(seen.floor, seen.most - 2048)
    coarse = range(seen.most, least, -8)
    if not coarse:
        return cut(seen, seen.top, symmetric)
    best = min(coarse, key=lambda c: (loss(c), -c))
    best = min(range(min(seen.most, best + 7), max(seen.floor, best - 8), -1), key=lambda c: (loss(c), -c))
    return cut(seen, edge(best + 1), symmetric)


def limits(output_type, symmetric):
    qmin, qmax = INTEGERS[output_type]
    return (-qmax, qmax) if symmetric and output_type in ("int8", "int16") else (qmin, qmax)


def scale_of(found, output_type, symmetric):
    low, high = min(found[0], 0.0), max(found[1], 0.0)
    if output_type in LARGEST:
        scale = max(-low, high) / LARGEST[output_type]
        return (np.float32(1) if scale < 2.0**-126 else np.float32(scale)), None
    qmin, qmax = limits(output_type, symmetric)
    if symmetric:
        high = max(-low, high)
        low = -high
    scale = (high - low) / (qmax - qmin)
    if scale < 2.0**-126:
        return np.float32(1), 0
    return np.float32(scale), int(np.rint((qmin + qmax) / 2 if symmetric else qmin - low / scale))


def calibrated(x, method="min_max", output_type="uint8", symmetric=None, axis=None, percentile=99.99):
    """(range, scale, zero_point or None), as in the answer: with an axis, of shape [2, C], [C] and [C]."""
    symmetric = output_type in LARGEST if symmetric is None else symmetric
    x = np.asarray(x)
    channels = [x] if axis is None else np.moveaxis(x, axis, 0)
    ranges, scales, zero_points = [], [], []
    for channel in channels:
        seen = Seen(channel)
        if not seen.n:
            found = (0.0, 0.0)
        elif method == "min_max":
            found = cut(seen, seen.top, symmetric)
        elif method == "percentile":
            found = percentile_range(seen, percentile, symmetric)
        else:
            found = mse_range(seen, output_type, symmetric)
        scale, zero_point = scale_of(found, output_type, symmetric)
        ranges.append(found)
        scales.append(scale)
        zero_points.append(zero_point)
    ranges = np.float32(ranges).T + np.float32(0)
    if axis is None:
        ranges, scales, zero_points = ranges[:, 0], scales[0], zero_points[0]
    return ranges, np.float32(scales), None if output_type in LARGEST else np.asarray(zero_points)


def arrays(types):
    """name -> numpy type, for the types that x may have."""
    return {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int32": np.int32}[types]
