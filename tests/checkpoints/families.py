"""client/checkpoints/families.inc: the families in which the general rules about names of weights are wrong.

    build/venv-checkpoints/bin/python tests/checkpoints/families.py            compares
    build/venv-checkpoints/bin/python tests/checkpoints/families.py --update   writes the file anew

Transformers builds every model type on the meta device with its default configuration, and says which 2-D tensors are weights of nn.Linear. The
rules are the patterns below, which are written to the file for the program; a row of the table corrects them for one type.
"""

import json
import os
import re
import signal
import sys
import warnings
from pathlib import Path

INC = Path(__file__).parents[2] / "client/checkpoints/families.inc"
# Of the last word of a module's name (numbers left out): embeddings and norms, unless it is one of the second.
EMBEDDING = r"embed|(^|_)emb[sd]?($|_)|norm|^(wte|wpe|shared|codebook|relative_attention_bias)$|^ln(_|$)"
PROJECTION = r"proj|patch|mapping"
# Of the whole name.
ROUTER = (
    r"(^|\.)((\w+_)?router(\.\w+)*|((shared_)?expert_|router_|moe_)?gate(\.(wg|linear|layer|proj|classifier))?|wg)$"
)
HEAD = (
    r"(^|\.)((\w+_)?lm_heads?|codec_head|score|qa_outputs|(\w+_)?classifier|embed_out)$|(^|\.)(lm_head|predictions)\.decoder$"
    r"|(^|\.)shared_head\.head$|^transformer\.output_layer$|^(output|head|unembed)$"
)
SECONDS = 25


def words(name):
    """A module's name without numbers."""
    return ".".join(part for part in name.split(".") if not part.isdigit())


def by_rules(module):
    """Whether the general rules take the module (without numbers) for a linear layer."""
    last = module.rpartition(".")[2]
    if re.search(HEAD, module) or re.search(ROUTER, module):
        return False
    return not re.search(EMBEDDING, last) or bool(re.search(PROJECTION, last))


def model_types():
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import modeling_auto as auto

    mappings = [
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, auto.MODEL_FOR_PRETRAINING_MAPPING_NAMES, auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
        auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES, auto.MODEL_MAPPING_NAMES,
    ]  # fmt: skip
    for model_type in sorted(CONFIG_MAPPING.keys()):
        classes = []
        for mapping in mappings:
            name = mapping.get(model_type)
            for one in [name] if isinstance(name, str) else list(name or ()):
                if one not in classes:
                    classes.append(one)
        if classes:
            yield model_type, classes


def build(model_type, name):
    """A model on the meta device; None if this installation cannot make it without weights or other packages."""
    import torch
    import transformers

    def late(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with torch.device("meta"):
            return getattr(transformers, name)(transformers.CONFIG_MAPPING[model_type]())
    except Exception:  # noqa: BLE001
        return None
    finally:
        signal.alarm(0)


def truth(model):
    """{module: (whether its 2-D weight is one of a linear layer, less heads and routers; whether it is the head)}."""
    import torch

    try:
        head = model.get_output_embeddings()
    except Exception:  # noqa: BLE001
        head = None
    found = {}
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if not isinstance(weight, torch.Tensor) or weight.dim() != 2:
            continue
        module_words = words(name)
        is_head = module is head or bool(re.search(HEAD, module_words))
        linear = isinstance(module, torch.nn.Linear) and not is_head and not re.search(ROUTER, module_words)
        found[module_words] = (linear, module is head)
    return found


def end_of(module, others):
    """The shortest end of the name that no module of `others` has."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        end = ".".join(parts[-count:])
        if not any(other == end or other.endswith("." + end) for other in others):
            return end
    return module


def row(modules):
    """(linear, other, heads): the ends of names, and names of heads, that correct the rules for a family."""
    linear = {name for name, (yes, _) in modules.items() if yes}
    other = set(modules) - linear
    heads = {name for name, (_, head) in modules.items() if head}
    lists = []
    for kind, wrong, rest in ((linear, lambda name: not by_rules(name), other), (other - heads, by_rules, linear)):
        lists.append(sorted({end_of(name, rest) for name in kind if wrong(name)}))
    return [*lists, sorted(name for name in heads if not re.search(HEAD, name))]


def table():
    rows = {}
    for model_type, classes in model_types():
        modules = {}
        for name in classes:
            model = build(model_type, name)
            if model is not None:
                for module, (linear, head) in truth(model).items():
                    before = modules.get(module, (linear, head))
                    modules[module] = (linear and before[0], head or before[1])
        lists = row(modules)
        if any(lists):
            rows[model_type] = lists
    return rows


def text(rows):
    lines = [
        "// Made by tests/checkpoints/families.py with transformers: do not edit.",
        f'constexpr char kEmbedding[] = R"({EMBEDDING})";',
        f'constexpr char kProjection[] = R"({PROJECTION})";',
        f'constexpr char kRouter[] = R"({ROUTER})";',
        f'constexpr char kHead[] = R"({HEAD})";',
        "constexpr Exceptions kFamilies[] = {",
        *("    {" + ", ".join(json.dumps(one) for one in (name, *map(" ".join, lists))) + "}," for name, lists in sorted(rows.items())),
        "};",
    ]
    return "// clang-format off\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    made = text(table())
    if sys.argv[1:] == ["--update"]:
        INC.write_text(made)
    elif made != INC.read_text():
        sys.exit(f"{INC} differs from what transformers says: --update writes it anew")
