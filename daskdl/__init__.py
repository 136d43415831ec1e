"""Deep learning on Dask clusters of CPUs."""

from __future__ import annotations

import importlib
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from daskdl.upper import UPPER
from daskdl.version import __version__

if TYPE_CHECKING:  # the names below, for editors and type checkers
    from daskdl.cluster.connection import connect
    from daskdl.data import SampleSet
    from daskdl.interop import load
    from daskdl.nn import save
    from daskdl.quantization import quantize
    from daskdl.tensor import Tensor, no_grad
    from daskdl.train import Trainer

# The most used names, imported on first use: `import daskdl` stays fast.
_HOMES = {
    "SampleSet": "daskdl.data",
    "Tensor": "daskdl.tensor",
    "Trainer": "daskdl.train",
    "connect": "daskdl.cluster",
    "load": "daskdl.interop",
    "no_grad": "daskdl.tensor",
    "quantize": "daskdl.quantization",
    "save": "daskdl.nn",
}
_ROOMS = (
    "cluster",
    "collective",
    "data",
    "errors",
    "interop",
    "metrics",
    "models",
    "nn",
    "ops",
    "optim",
    "plot",
    "predict",
    "quantization",
    "search",
    "sklearn",
    "stream",
    "text",
    "torch",
    "train",
)
__all__ = [
    "SampleSet",
    "Tensor",
    "Trainer",
    "__version__",
    "connect",
    "load",
    "no_grad",
    "quantize",
    "save",
]

UPPER.update(
    {
        "predict": partial(importlib.import_module, "daskdl.predict"),
        "torch": partial(importlib.import_module, "daskdl.torch"),
        "torch names": partial(importlib.import_module, "daskdl.interop.torch_weights.names"),
    }
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"daskdl.{name}")
    raise AttributeError(f"module 'daskdl' has no attribute {name!r}")


def __dir__() -> list[str]:
    here = {*_ROOMS} if find_spec("torch") else {*_ROOMS} - {"torch"}
    return sorted({*__all__, *here})
