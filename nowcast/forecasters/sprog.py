"""S-PROG: rain that moves and whose small scales fade as they have been changing; its members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters.forecast import THRESHOLDS, Forecast
from nowcast.forecasters.forecaster import EachLead, Request, check_thresholds
from nowcast.lagrangian.advection import carry, carry_all
from nowcast.lagrangian.cascade import Arrival, Cascade, arrivals
from nowcast.lagrangian.correction import Correction, between, redrawn
from nowcast.lagrangian.exceedance import SHIPPED, MarginTable, best_cut, exceedance
from nowcast.lagrangian.frames import BASELINE, FRAMES
from nowcast.lagrangian.ranks import match, quantile, restrained
from nowcast.lagrangian.texture import TILT, Noise, evened, sharpened, textured

Float = NDArray[np.float32]

#: Least expected number of pixels above a threshold that a factor divides by.
LEAST_AREA = 1e-9


@dataclass(frozen=True)
class Sprog(EachLead):
    """Spectral prognosis: octaves of dB rain, each an AR(2) in the frame that moves with the rain.

    The last three frames are brought to the place of the last one, taken apart into octaves, and
    each octave is continued by its own AR(2). Small scales fade within minutes and large ones stay,
    so that the field is the expected one and smooth. Then, region by
    region, it gets back the distribution of rain rates of the last frame, moved: storms keep their
    own rates, and none is stronger than the rain of that frame nearby.

    Probabilities come from the ranks of the expected field (`MarginTable`), members from these
    probabilities and noise with the uncertain scales: the members of a pixel are distributed as the
    probabilities say, and each member looks like rain.

    References
    ----------
    Seed, "A dynamic and spatial scaling approach to advection forecasting", J. Appl. Meteor. 42
    (2003), 381-388. Pulkkinen et al., "Pysteps: an open-source Python library for probabilistic
    precipitation nowcasting (v1.0)", Geosci. Model Dev. 12 (2019), 4185-4219.
    """

    n_in, least, baseline = FRAMES, 2, BASELINE
    #: Numbers of the probabilities; by default those fitted to the project's real events.
    table: MarginTable = field(default=SHIPPED, repr=False)
    #: Such as a network's, added to the logits of the probabilities; the field then has rain where
    #: they are largest, over areas that change as they do.
    correction: Correction | None = None
    #: The single field has the spectrum and the rates of rain at all leads, so that cells are seen;
    #: without it, it is the expected one, which errs less and is smooth.
    realistic: bool = False

    def each_lead(self, rain: Float, leads: int, **settings: Any) -> Iterator[Forecast]:
        """Yield the forecast of each lead time; see `EachLead`."""
        request = Request(rain, leads, **settings)
        past, ages = request.last("sprog", self.least, self.n_in, self.baseline)
        wanted = check_thresholds("sprog", request.thresholds)
        spacing_km, members, seed = request.spacing_km, request.members, request.seed
        cascade = Cascade.of(
            past, spacing_km=spacing_km, step_minutes=request.step_minutes, ages=ages
        )
        del rain, past, request  # of a large grid every frame counts
        noises = [cascade.noise(seed, number) for number in range(-(-members // 2))]
        times, tilt = cascade.times(leads), TILT
        for here in arrivals(cascade, leads):
            shift = None
            if self.correction is not None:
                shift = self.correction(cascade, here, self.table)
            corrected = shift is not None and bool(np.any(shift))
            probability = cuts = ensemble = None
            chances = np.empty((0, 0, 0), np.float32)
            if corrected or members or wanted == THRESHOLDS:
                chances = self._chances(here, THRESHOLDS, shift, spacing_km)
            field = match(here.rank, here.moved)[np.newaxis]
            if corrected:
                factors = self._factors(here, chances, spacing_km)
                field = redrawn(field[0], chances, factors, THRESHOLDS)[np.newaxis]
            field = restrained(field[0], here.moved, spacing_km)[np.newaxis]
            if self.realistic or members:
                sharp = carry(cascade.last, here.points, nearest=True)
            if self.realistic:
                field = textured(field[0], sharp)[np.newaxis]
            if wanted:
                usual = wanted == THRESHOLDS
                made = chances if usual else self._chances(here, wanted, shift, spacing_km)
                cuts = np.array([[best_cut(chance)] for chance in made], np.float32)
                probability = made[:, np.newaxis]
                del made
            if members:
                for noise in noises:
                    noise.go_on(float(times[here.lead - 1]))
                ensemble, tilt = _ensemble(noises, members, tilt, here, chances, sharp, spacing_km)
            yield Forecast(field, wanted, probability, ensemble, cuts)
            # Before the next ones are made:
            del field, probability, chances, cuts, ensemble, here, shift

    def _chances(
        self, here: Arrival, wanted: Sequence[float], shift: Float | None, spacing_km: float
    ) -> Float:
        """Return probabilities (threshold, y, x), corrected by a shift at `THRESHOLDS`."""
        if shift is not None and tuple(wanted) != THRESHOLDS:
            shift = between(shift, THRESHOLDS, wanted)
        return exceedance(
            here.expected, here.rank, here.moved, wanted, here.minutes, self.table,
            spacing_km=spacing_km, sure=here.sure, shift=shift,
        )  # fmt: skip

    def _factors(self, here: Arrival, corrected: Float, spacing_km: float) -> list[float]:
        """Return the factor by which a correction changes the expected area of each threshold."""
        factors = []
        for threshold, chance in zip(THRESHOLDS, corrected, strict=True):
            # One at a time: on a large grid seven of them take 700 MB.
            before = self._chances(here, (threshold,), None, spacing_km)
            factors.append(_total(chance) / max(_total(before), LEAST_AREA))
        return factors


def _ensemble(
    noises: Sequence[Noise], members: int, tilt: float, here: Arrival, chances: Float,
    frame: Float, spacing_km: float,
) -> tuple[Float, float]:  # fmt: skip
    """Return members (member, 1, y, x) as sharp as a frame, and the tilt of their noise."""

    def made(count: int, tilt: float) -> Float:
        """Return quantiles of the probabilities at noise, moved."""
        fields = [noise.field(tilt) for noise in noises[: -(-count // 2)]]
        carried = carry_all(np.stack(fields), here.points)
        evened(carried)
        out = np.empty((count, 1, *chances.shape[1:]), np.float32)
        for k in range(count):
            # Members in pairs of opposite noise stand for the distribution better.
            quantile((-1) ** k * carried[k // 2], chances, THRESHOLDS, out[k, 0])
        return out

    tilt = sharpened(lambda tilt: made(1, tilt)[0, 0], tilt, frame, spacing_km)
    return made(members, tilt), tilt


def _total(probability: Float) -> float:
    """Return the number of pixels that are expected to reach a threshold."""
    return float(np.nansum(probability, dtype=np.float64))


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
        """Yield the forecast of each lead time; see `EachLead`.

        Without ``members`` there are `MEMBERS`.
        """
        settings["members"] = settings.get("members") or MEMBERS
        for made in Sprog(self.table).each_lead(rain, leads, **settings):
            assert made.members is not None
            yield replace(made, rain=made.members.mean(axis=0, dtype=np.float32))
            del made  # before the next one is made
