"""Optim methods: pure functions of weights, gradient and state over one flat vector."""

from daskdl.optim import schedules
from daskdl.optim.accumulate import Accumulate
from daskdl.optim.adadelta import Adadelta
from daskdl.optim.adagrad import Adagrad
from daskdl.optim.adam import Adam
from daskdl.optim.adamax import Adamax
from daskdl.optim.adamw import AdamW
from daskdl.optim.clipnorm import ClipNorm
from daskdl.optim.clipvalue import ClipValue
from daskdl.optim.elementwise import Elementwise
from daskdl.optim.ema import EMA
from daskdl.optim.ftrl import Ftrl
from daskdl.optim.groups import NO_DECAY_OF_VECTORS, Group, Groups
from daskdl.optim.lamb import LAMB
from daskdl.optim.lars import LARS
from daskdl.optim.layout import Layout
from daskdl.optim.lbfgs import LBFGS
from daskdl.optim.method import Method, State
from daskdl.optim.nadam import Nadam
from daskdl.optim.rmsprop import RMSprop
from daskdl.optim.sgd import SGD
from daskdl.optim.statefile import load_state, save_state

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
