"""Optim methods: pure functions of weights, gradient and state over one flat vector."""

from daskdl.optim import schedules
from daskdl.optim.adagrad import Adadelta, Adagrad, Ftrl, RMSprop
from daskdl.optim.adam import Adam, Adamax, AdamW, Nadam
from daskdl.optim.clipping import ClipNorm, ClipValue
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.groups import NO_DECAY_OF_VECTORS, Group, Groups
from daskdl.optim.lars import LAMB, LARS
from daskdl.optim.layout import Layout
from daskdl.optim.lbfgs import LBFGS
from daskdl.optim.method import Method, State
from daskdl.optim.sgd import SGD
from daskdl.optim.statefile import load_state, save_state
from daskdl.optim.wrapper import EMA, Accumulate

__all__ = [
    "EMA",
    "LAMB",
    "LARS",
    "LBFGS",
    "NO_DECAY_OF_VECTORS",
    "SGD",
    "Accumulate",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ClipNorm",
    "ClipValue",
    "Elementwise",
    "Ftrl",
    "Group",
    "Groups",
    "Layout",
    "Method",
    "Nadam",
    "RMSprop",
    "State",
    "load_state",
    "save_state",
    "schedules",
]
