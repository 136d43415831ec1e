"""Inference: operations of a model joined and computed late, with weights prepared once.

:mod:`pending` has results that are computed when somebody reads them, :mod:`prepared` the weights
in the order of the kernels, :mod:`folded` products of whole tables, :mod:`passes` the table of
rules by which operations are computed, with those in :mod:`rules`, :mod:`images`,
:mod:`channels` and :mod:`sequences`, :mod:`program` the kernels of a pass written down, and
:mod:`running` all of it for one model.
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
