"""Inference: join a model's operations, compute them late, and prepare weights once.

:mod:`pending` has results that are computed when they are read, :mod:`prepared` weights in the
layout of the kernels, and products of whole tables. Rules in :mod:`rules`, :mod:`images`,
:mod:`channels`, :mod:`int8` and :mod:`sequences` say how operations are computed; :mod:`blocks`
joins convolutions. :mod:`program` records the kernels of a pass, and :mod:`running` applies all
this to one model.
"""

from daskdl.nn.inference import channels, images, int8, rules, sequences
from daskdl.nn.inference.running import Inference, constants_of, optimized

__all__ = [
    "Inference",
    "channels",
    "constants_of",
    "images",
    "int8",
    "optimized",
    "rules",
    "sequences",
]
