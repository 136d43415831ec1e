"""Deep learning on Dask clusters of CPUs."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# What a user reaches for first, loaded when it is used: `import daskdl` stays quick.
_HOMES = {
    "SampleSet": "daskdl.data",
    "Tensor": "daskdl.tensor",
    "Trainer": "daskdl.train",
    "connect": "daskdl.cluster",
    "load": "daskdl.models",
    "no_grad": "daskdl.tensor",
    "save": "daskdl.nn",
}
__all__ = ["SampleSet", "Tensor", "Trainer", "__version__", "connect", "load", "no_grad", "save"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in ("data", "models", "nn", "ops", "optim", "train"):
        return importlib.import_module(f"daskdl.{name}")
    raise AttributeError(f"module 'daskdl' has no attribute {name!r}")
