"""Grouping: learning rate and weight decay by range of the vector, as a step needs them."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.optim.ranges import Ranges


@dataclass(frozen=True)
class Grouping:
    """Settings by group of parameters.

    Parameters
    ----------
    ranges : Ranges, optional
        Which group each number is of; None if there is one.
    rates : tuple of float
        What the learning rate is multiplied with in each group.
    decays : tuple of float or None
        Each group's weight decay; None for the method's.
    """

    ranges: Ranges | None = None
    rates: tuple[float, ...] = (1.0,)
    decays: tuple[float | None, ...] = (None,)


#: One group.
ALONE = Grouping()
