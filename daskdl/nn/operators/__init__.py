"""Operators of :class:`daskdl.nn.Graph` under the names of ONNX, one file for each family."""

from daskdl.nn.operators import (
    arithmetic,
    attention,
    control,
    convolution,
    elementwise,
    images,
    indexing,
    norms,
    pooling,
    quantize,
    recurrent,
    reductions,
    shapes,
    signals,
)
from daskdl.nn.operators.table import KEYS as KEYS
from daskdl.nn.operators.table import TABLE as TABLE
from daskdl.nn.operators.table import Call as Call
from daskdl.nn.operators.table import operator as operator

#: Modules that add their operators to the table when they are imported.
FAMILIES = (
    arithmetic,
    attention,
    control,
    convolution,
    elementwise,
    images,
    indexing,
    norms,
    pooling,
    quantize,
    recurrent,
    reductions,
    shapes,
    signals,
)

__all__ = ["FAMILIES", "KEYS", "TABLE", "Call", "operator"]
