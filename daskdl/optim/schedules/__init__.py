"""Schedules of the learning rate, for ``learning_rate=`` of every method."""

from daskdl.optim.schedules.curves import Cosine, InverseTime, Polynomial
from daskdl.optim.schedules.phases import OneCycle, Sequence, Warmup
from daskdl.optim.schedules.plateau import Plateau
from daskdl.optim.schedules.schedule import Exponential, MultiStep, Schedule, Step

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
