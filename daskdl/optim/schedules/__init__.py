"""Schedules of the learning rate, for ``learning_rate=`` of every method."""

from daskdl.optim.schedules.cosine import Cosine
from daskdl.optim.schedules.exponential import Exponential
from daskdl.optim.schedules.inversetime import InverseTime
from daskdl.optim.schedules.multistep import MultiStep
from daskdl.optim.schedules.onecycle import OneCycle
from daskdl.optim.schedules.plateau import Plateau
from daskdl.optim.schedules.polynomial import Polynomial
from daskdl.optim.schedules.schedule import Schedule
from daskdl.optim.schedules.sequence import Sequence
from daskdl.optim.schedules.step import Step
from daskdl.optim.schedules.warmup import Warmup

__all__ = [
    "Cosine",
    "Exponential",
    "InverseTime",
    "MultiStep",
    "OneCycle",
    "Plateau",
    "Polynomial",
    "Schedule",
    "Sequence",
    "Step",
    "Warmup",
]
