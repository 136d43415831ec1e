"""Losses as modules: loss(prediction, target, sample_weight) is the mean over samples."""

from types import ModuleType as _ModuleType

from daskdl.nn.losses.crossentropy import *
from daskdl.nn.losses.images import *
from daskdl.nn.losses.loss import *
from daskdl.nn.losses.pairs import *
from daskdl.nn.losses.regression import *

# All public names that the imports above bring; type checkers read the imports themselves.
vars()["__all__"] = [n for n, v in vars().items() if n[0] != "_" and not isinstance(v, _ModuleType)]
