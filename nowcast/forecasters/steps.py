"""Ensembles: members of rain that moves, each with its own growth and decay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import Forecast
from nowcast.forecasters.forecaster import EachLead
from nowcast.forecasters.sprog import Sprog
from nowcast.lagrangian.exceedance import SHIPPED, MarginTable
from nowcast.lagrangian.frames import BASELINE, FRAMES

#: Members unless others are asked for.
MEMBERS = 20


@dataclass(frozen=True)
class Steps(EachLead):
    """Members of `Sprog`, and their mean as the single field.

    As in STEPS, what the octaves of the rain forget is replaced by noise of the same scales and
    memory. In place of noise that is added to the field, it chooses each pixel's quantile of the
    calibrated probabilities: the members' spread is right at every lead without being tuned.

    References
    ----------
    Bowler, Pierce and Seed, "STEPS: a probabilistic precipitation forecasting scheme which merges
    an extrapolation nowcast with downscaled NWP", Q. J. R. Meteorol. Soc. 132 (2006), 2127-2155.
    """

    n_in, least, baseline = FRAMES, 2, BASELINE
    #: Numbers of the probabilities; by default those fitted to the project's real events.
    table: MarginTable = field(default=SHIPPED, repr=False)

    def each_lead(
        self, rain: NDArray[np.float32], leads: int, **settings: Any
    ) -> Iterator[Forecast]:
        """Give the forecast of one lead time after the other; see `EachLead`.

        Without a number of members there are `MEMBERS`.
        """
        settings["members"] = settings.get("members") or MEMBERS
        for made in Sprog(self.table).each_lead(rain, leads, **settings):
            assert made.members is not None
            yield replace(made, rain=made.members.mean(axis=0, dtype=np.float32))
            del made  # before the next one is made
