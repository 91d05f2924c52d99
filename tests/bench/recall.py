"""What each kind of code costs in recall, in bytes and in time, on three sets of embeddings (recall_sets.py): writes the table of
client/EMBEDDINGS.md, or prints it with --dry-run.

    tests/bench/recall.sh                 in an environment with everything that it needs
    python tests/bench/recall.py [--sets=mixture,wordllama,minilm] [--wordnet=FOLDER] [--dry-run]

recall@10: how many of a query's ten nearest embeddings, by the floats' inner product, are among the ten that were found. Every search
looks at all embeddings, so only the codes lose recall. Queries are in no set; ranges are those of 10,000 of its embeddings.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import recall_sets

import quantd

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "client" / "EMBEDDINGS.md"
BEGIN, END = "<!-- recall -->", "<!-- end of recall -->"
TITLES = {
    "mixture": "mixture, 100,000 x 384",
    "wordllama": "WordLlama, 116,697 x 256",
    "minilm": "MiniLM, 10,000 x 384",
}
SAME_BITS = [name for name, preset in quantd.EMBEDDING_PRESETS.items() if preset["recipe"] == "bits"]


def nearest(scores, count):
    return np.argpartition(-scores, count, axis=1)[:, :count]


def rescored(queries, documents, candidates):
    """For each query the ten best candidates by their inner product with `documents`."""
    found = np.empty((len(queries), 10), np.int64)
    for i, (query, rows) in enumerate(zip(queries, candidates)):
        found[i] = rows[np.argsort(-(documents[rows] @ query), kind="stable")[:10]]
    return found


def signs(codes, width):
    """Bits as +1 and -1, whose inner product is the width minus twice the Hamming distance."""
    return np.unpackbits(codes, axis=1)[:, :width].astype(np.float32) * 2 - 1


def searches(engine, documents, queries):
    """Yields (key, what is found, bytes that are searched, additional bytes for rescoring)."""
    width = documents.shape[1]
    sample = documents[np.random.default_rng(recall_sets.SEED).permutation(len(documents))[:10_000]]
    ranges = np.stack([sample.min(axis=0), sample.max(axis=0)])

    def codes(x, preset, **more):
        return engine.quantize_embeddings(x, preset=preset, **more).y

    def found(scores):
        return nearest(scores, 10)

    truth = found(queries @ documents.T)
    yield "float32", truth, 4 * width, 0
    half = documents.astype(np.float16).astype(np.float32)
    yield "float16", found(queries @ half.T), 2 * width, 0
    placed = codes(documents, "sentence-transformers-int8", ranges=ranges)
    steps = (ranges[1] - ranges[0]) / np.float32(255)
    values = (placed.astype(np.float32) + 128) * np.where(steps == 0, 1, steps) + ranges[0]
    yield "int8-query", found(queries @ values.T), width, 0
    asked = codes(queries, "sentence-transformers-int8", ranges=ranges).astype(np.float32)
    yield "int8-codes", found(asked @ placed.astype(np.float32).T), width, 0
    x, q = (codes(part, "sqlite-vec-int8").astype(np.float32) for part in (documents, queries))
    yield "sqlite-vec-int8", found(2 * (q @ x.T) - np.square(x).sum(axis=1)), width, 0
    x, q = (codes(part, "usearch-i8").astype(np.float32) for part in (documents, queries))
    yield "usearch-i8", found((q @ x.T) / np.linalg.norm(x, axis=1)), width, 0
    packed = codes(documents, "sentence-transformers-ubinary")
    bits = signs(packed, width)
    distances = signs(codes(queries, "sentence-transformers-ubinary"), width) @ bits.T
    yield "bits", found(distances), packed.shape[1], 0
    for count in (40, 100):
        candidates = nearest(distances, count)
        yield f"bits-bits-{count}", rescored(queries, bits, candidates), packed.shape[1], 0
        yield f"bits-int8-{count}", rescored(queries, values, candidates), packed.shape[1], width
        yield f"bits-float-{count}", rescored(queries, documents, candidates), packed.shape[1], 4 * width


# The names of the rows, and their presets, in the order of the table.
ROWS = {
    "float32": ("float32", ""),
    "float16": ("float16", ""),
    "int8-query": ("int8 by ranges, the query stays float", "sentence-transformers-int8, -uint8"),
    "int8-codes": ("int8 by ranges, codes against codes", "sentence-transformers-int8"),
    "sqlite-vec-int8": ("int8 of [-1, 1], L2", "sqlite-vec-int8"),
    "usearch-i8": ("int8 of the direction, cosine", "usearch-i8"),
    "bits": ("bits, Hamming distance", "every preset of bits"),
    "bits-bits-40": ("... 40 rescored: float query, bits", ""),
    "bits-int8-40": ("... 40 rescored: float query, int8 by ranges", ""),
    "bits-float-40": ("... 40 rescored: float32", ""),
    "bits-bits-100": ("... 100 rescored: float query, bits", ""),
    "bits-int8-100": ("... 100 rescored: float query, int8 by ranges", ""),
    "bits-float-100": ("... 100 rescored: float32", ""),
}
ENCODED = {"int8-query": "sentence-transformers-int8", "int8-codes": "sentence-transformers-int8", "sqlite-vec-int8": "sqlite-vec-int8",
           "usearch-i8": "usearch-i8", "bits": "sentence-transformers-ubinary"}  # fmt: skip


def microseconds(engine, x, preset):
    """The CPU time of one thread to encode an embedding: the median of nine runs over 1,000 embeddings that are in the cache or near
    it."""
    x = np.ascontiguousarray(x[:1000])
    ranges = np.stack([x.min(axis=0), x.max(axis=0)]) if quantd.EMBEDDING_PRESETS[preset]["recipe"] == "ranges" else None
    out = engine.quantize_embeddings(x, preset=preset, ranges=ranges).y
    times = []
    for _ in range(9):
        begin = time.thread_time()
        for _ in range(20):
            engine.quantize_embeddings(x, preset=preset, ranges=ranges, out=out)
        times.append((time.thread_time() - begin) / 20 / len(x) * 1e6)
    return statistics.median(times)


def check_bits(engine, x):
    """One row stands for all presets of bits: they have the same bits in different layouts, except for vLLM's bit of a 0."""
    x = x[(x != 0).all(axis=1)]
    whole = engine.quantize_embeddings(x, preset="sentence-transformers-ubinary").y
    for name in SAME_BITS:
        preset, y = quantd.EMBEDDING_PRESETS[name], engine.quantize_embeddings(x, preset=name).y
        if y.dtype == np.int8:
            y = y.view(np.uint8) if preset.get("signed_bits") else (y.astype(np.int16) + 128).astype(np.uint8)
        if preset.get("bit_order") == "lsb_first":
            y = np.packbits(np.unpackbits(y, axis=1, bitorder="little"), axis=1)
        if not np.array_equal(y, whole):
            sys.exit(f"preset {name} has other bits: it needs a row of its own")


def measure(names, folder, wordnet):
    """recall, bytes and times by row and set."""
    engine = quantd.local(threads=1)
    makers = {"mixture": recall_sets.mixture, "wordllama": lambda: recall_sets.wordllama(wordnet), "minilm": lambda: recall_sets.minilm(wordnet)}
    found, costs = {}, {}
    for name in names:
        documents, queries = recall_sets.kept(folder, name, makers[name])
        print(f"{name}: {documents.shape[0]} x {documents.shape[1]}, {len(queries)} queries", file=sys.stderr)
        print(f"{np.mean(documents == 0):.1e} of the values are 0", file=sys.stderr)
        check_bits(engine, documents[:1000])
        truth = None
        for key, rows, searched, beside in searches(engine, documents, queries):
            truth = rows if truth is None else truth
            hits = (rows[:, :, None] == truth[:, None, :]).any(axis=2).mean()
            found[key, name] = float(hits), searched, beside
        if name == names[0]:
            times = {preset: microseconds(engine, documents, preset) for preset in set(ENCODED.values())}
            costs = {key: times[preset] for key, preset in ENCODED.items()}
    return found, costs


def table(names, found, costs):
    """The lines of the document's table. Bytes and times are of the first set."""
    yield "| codes, and how they are searched | preset | bytes | to rescore | us to encode | " + " | ".join(TITLES[name] for name in names) + " |"
    yield "|---" * 2 + "|---:" * (3 + len(names)) + "|"
    for key, (title, preset) in ROWS.items():
        _, searched, beside = found[key, names[0]]
        recalls = " | ".join(f"{found[key, name][0]:.3f}" for name in names)
        cost = f"{costs[key]:.2f}" if key in costs else ""
        yield f"| {title} | {preset} | {searched} | {beside or ''} | {cost} | {recalls} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=",".join(TITLES))
    parser.add_argument("--wordnet", default="/usr/share/wordnet", help="where Debian's wordnet-base has its files")
    parser.add_argument("--dry-run", action="store_true", help="print the table, write nothing")
    given = parser.parse_args()
    names = given.sets.split(",")
    if not set(names) <= set(TITLES):
        parser.error(f"--sets knows {', '.join(TITLES)}")
    found, costs = measure(names, ROOT / "build" / "bench", given.wordnet)
    lines = "\n".join(table(names, found, costs))
    print(lines)
    if given.dry_run or names != list(TITLES):
        return
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(before + BEGIN + "\n" + lines + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
