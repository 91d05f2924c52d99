"""Converts models to and from the layouts of vLLM, transformers, llama.cpp and others, like quantctl convert, in this process.

    from quantd import checkpoints

    report = checkpoints.convert("model", "small", to="compressed-tensors:int8")

The same code as quantctl convert, and so the same bytes and rules. Needs the package quantd-core.
"""

import json
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from .choices import flag

__all__ = ["convert", "shards"]

_Path = Union[str, "os.PathLike[str]"]


def _engine() -> Any:
    from .engine import Engine

    return Engine()


def convert(
    source: _Path,
    out: _Path,
    *,
    to: str,
    only: str = "",
    skip: str = "",
    all: bool = False,
    dry_run: bool = False,
    resume: bool = False,
    force: bool = False,
    shards: Optional[Sequence[str]] = None,
    threads: Optional[int] = None,
    progress: Optional[Callable[[int, int, str], Any]] = None,
) -> Dict[str, Any]:
    """Converts a model. Returns what was done with each tensor, as printed by `quantctl convert --json`.

    source: a folder, a .safetensors or a .gguf. out, to, only, skip, all, dry_run, resume, force, threads: the flags of quantctl.
    shards: convert only these shards of a folder, in OUT.partial. Several processes may do so at the same time; a final call with
    resume=True and without shards converts the rest and makes OUT. progress: called with (bytes done, total bytes, name of a
    file) on this thread, at most twenty times a second. An exception from it ends the conversion, and so does Ctrl-C;
    OUT.partial is kept for resume=True then.

    InvalidArgumentError (a ValueError): a wrong layout, a model that is damaged or already quantized, or a weight that can't be
    converted (NaN, infinity), with its name. QuantdError: out exists (ALREADY_EXISTS), and errors of files.
    """
    from quantd_core import _native

    from .engine import _fail

    options = _native.ConvertOptions()
    options.model, options.out, options.to = os.fspath(source), os.fspath(out), to
    options.only, options.skip, options.all = only, skip, flag(all, "all", False)
    options.resume, options.force, options.shards = flag(resume, "resume", False), flag(force, "force", False), list(shards or [])
    _, count = _engine()._limits(None, threads)
    return json.loads(_native.convert_checkpoint(options, flag(dry_run, "dry_run", False), count, progress, _fail))


def shards(source: _Path) -> List[str]:
    """The names of a model's shards, for convert(shards=...)."""
    from quantd_core import _native

    from .engine import _fail

    return _native.shards_of_checkpoint(os.fspath(source), _fail)
