"""All methods over all events: scores by event, method and lead, and their pools."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from pathlib import Path

import numpy as np

from ci.bench.skill import methods
from ci.bench.skill.events import Event
from ci.bench.skill.fitted import Logistic, calibrated_threshold
from ci.bench.skill.scores import PROBABLE, THRESHOLDS, Forecast, Scores, score
from nowcast.verification.bootstrap import bootstrap_weights, difference_interval

#: Successive cases that share frames, half an hour apart; bootstrap samples of an interval.
BLOCK, DRAWS = 3, 1000
POOL = "all events"


@dataclass(frozen=True)
class Results:
    """Scores of every case.

    Parameters
    ----------
    cases : dict of (event, method, lead) to list of Scores
        One for each valid time; the lists of all methods of an event and lead have the same order.
    radars : dict of event to radar
    methods : sequence of str
    """

    cases: dict[tuple[str, str, int], list[Scores]]
    radars: dict[str, str]
    methods: Sequence[str]

    def events(self) -> list[str]:
        """Names of the events."""
        return list(self.radars)

    @cached_property
    def leads(self) -> list[int]:
        """Lead times in minutes."""
        return sorted({lead for _, _, lead in self.cases})

    def pools(self) -> list[str]:
        """Names of the sums over events: each radar of several events, and all."""
        of = list(self.radars.values())
        return [*(radar for radar in dict.fromkeys(of) if of.count(radar) > 1), POOL]

    def of(self, name: str) -> list[str]:
        """Return the events of a pool; for an event's name the event itself."""
        if name in self.radars:
            return [name]
        return [event for event, radar in self.radars.items() if name in (radar, POOL)]

    @cached_property
    def _sums(self) -> dict[tuple[str, str, int], Scores]:
        return {key: reduce(add, cases, Scores()) for key, cases in self.cases.items()}

    def sums(self, event: str, method: str, lead: int) -> Scores:
        """Return the sum of the scores of an event or a pool."""
        return reduce(add, (self._sums[e, method, lead] for e in self.of(event)), Scores())

    def others(self, event: str, method: str, lead: int) -> list[Scores]:
        """Return the scores of each other radar, summed over its events."""
        by_radar: dict[str, Scores] = {}
        for other, radar in self.radars.items():
            if radar != self.radars[event]:
                sums = self._sums[other, method, lead]
                by_radar[radar] = by_radar.get(radar, Scores()) + sums
        return list(by_radar.values())

    def threshold(self, event: str, method: str, lead: int, threshold: float) -> float:
        """Return the threshold of a method's field on an event, fitted on other radars."""
        return calibrated_threshold(self.others(event, method, lead), threshold)

    def calibrated_csi(self, event: str, method: str, lead: int, threshold: float) -> float:
        """CSI of a method's yes and no, else of its field, cut as fitted on other radars."""
        hits, false_alarms, misses = self.counts(event, method, lead, threshold)
        union = hits + false_alarms + misses
        return float(hits / union) if union else float("nan")

    def calibrated_bias(self, event: str, method: str, lead: int, threshold: float) -> float:
        """Frequency bias of the same yes and no: forecast area over observed area."""
        hits, false_alarms, misses = self.counts(event, method, lead, threshold)
        observed = hits + misses
        return float((hits + false_alarms) / observed) if observed else float("nan")

    def counts(self, event: str, method: str, lead: int, threshold: float) -> np.ndarray:
        """Return hits, false alarms and misses of an event or a pool, (3,)."""
        chosen = self.of(event)
        return np.sum([self.decided(e, method, lead, threshold).sum(0) for e in chosen], axis=0)

    def decided(self, event: str, method: str, lead: int, threshold: float) -> np.ndarray:
        """Return hits, false alarms and misses of each case of an event, (case, 3)."""
        t = THRESHOLDS.index(threshold)
        if self._sums[event, method, lead].decided[t].any():
            return np.stack([case.decided[t] for case in self.cases[event, method, lead]])
        cut = self.threshold(event, method, lead, threshold)
        return np.array([case.counts(threshold, cut) for case in self.cases[event, method, lead]])

    def gain(
        self,
        ours: str,
        peer: str,
        lead: int,
        threshold: float,
        name: str = POOL,
        cut: bool = True,
    ) -> tuple[float, float, float]:
        """Return a difference of CSI in a pool, and its 95 % interval.

        The bootstrap draws events, and in each event runs of `BLOCK` cases, which share frames.

        Parameters
        ----------
        ours, peer : str
        lead : int
        threshold : float
        name : str
            Of an event or a pool.
        cut : bool
            Whether to use yes and no of `decided`; else the field is cut at the threshold.
        """
        events = self.of(name)
        parts = []
        for event in events:
            both = [self.decided(event, m, lead, threshold) for m in (peer, ours)]
            if not cut:
                both = [
                    np.array([case.counts(threshold) for case in self.cases[event, m, lead]])
                    for m in (peer, ours)
                ]
            parts.append(np.stack(both, axis=1))
        counts = np.concatenate(parts)
        labels = np.repeat(np.arange(len(events)), [len(part) for part in parts])
        weights = bootstrap_weights(labels, BLOCK, DRAWS)
        low, high = difference_interval(counts[..., 0], counts.sum(-1), 0, weights)[:, 1]
        theirs, mine = counts[..., 0].sum(0) / np.maximum(counts.sum((0, 2)), 1)
        return float(mine - theirs), float(low), float(high)

    def brier(self, event: str, method: str, lead: int) -> tuple[np.ndarray, bool]:
        """Return the sums of the Brier score, and whether the method has probabilities.

        A method without probabilities gets a logistic of its field that was fitted on other radars.
        """
        chosen = self.of(event)
        parts = [self._sums[e, method, lead].brier for e in chosen]
        if all(sums.any() for sums in parts):
            return np.sum(parts, axis=0), True
        return np.sum([self.logistic_brier(e, method, lead) for e in chosen], axis=0), False

    def logistic_brier(self, event: str, method: str, lead: int) -> np.ndarray:
        """Return the Brier sums of a logistic of the field that was fitted on other radars."""
        others = self.others(event, method, lead)
        sums = self._sums[event, method, lead]
        # With a single radar it is fitted on that one: better than no figure.
        return Logistic.fit(others or [sums], PROBABLE).brier_sums(sums, PROBABLE)


def compare(
    events: Sequence[Event],
    chosen: Sequence[str],
    leads: Sequence[int],
    *,
    every: int,
    most: int | None,
    cache: Path,
    say: Callable[[str], None],
) -> Results:
    """Run the chosen methods on all starts of all events.

    Parameters
    ----------
    leads : sequence of int
        Lead times in minutes; every event's step divides them.
    every : int
        Minutes between two starts.
    most : int, optional
        Largest number of starts of an event, the first ones.
    cache : path
        Folder of the peer's forecasts.
    say : callable
        Gets messages of progress.
    """
    cases: dict[tuple[str, str, int], list[Scores]] = {}
    radars = {}
    for event in events:
        starts = event.starts(methods.frames_in(event.step), leads, every)[:most]
        common = event.common_valid_times(starts, leads)
        if not common:
            say(f"{event.name}: no valid time that all leads reach from {len(starts)} starts")
            continue
        radars[event.name] = event.radar
        began = time.perf_counter()
        for start in starts:
            made = {name: methods.run(name, event, start, list(leads), cache) for name in chosen}
            for position, lead in enumerate(leads):
                valid = start + lead // event.step
                if valid not in common:
                    continue
                observed = event.rain[valid]
                scored = _scored(observed, made, position)
                for name, forecast in made.items():
                    cases.setdefault((event.name, name, lead), []).append(
                        score(forecast, position, observed, scored, event.spacing)
                    )
        say(
            f"{event.name}: {len(common)} valid times, {len(starts)} starts, "
            f"{event.spacing:g} km, {event.rain.shape[1]} x {event.rain.shape[2]}, "
            f"{time.perf_counter() - began:.0f} s"
        )
    return Results(cases, radars, list(chosen))


def _scored(observed: np.ndarray, made: dict[str, Forecast], position: int) -> np.ndarray:
    """Return the pixels that are known in the observation and in every forecast."""
    scored = np.isfinite(observed)
    for forecast in made.values():
        scored &= np.isfinite(forecast.rain[position])
    return scored


def summary(results: Results, event: str, method: str, lead: int) -> dict[str, float | bool]:
    """Return Brier score, reliability error, CRPS and spectral ratio."""
    from nowcast.verification.probability import brier_parts, crps, reliability_curve

    sums, has_probability = results.brier(event, method, lead)
    mean, frequency, count = reliability_curve(sums)
    sure = count >= 1000
    scores = results.sums(event, method, lead)
    return {
        "brier_1": brier_parts(sums).score,
        "reliability_error_1": float(np.abs(mean - frequency)[sure].max()) if sure.any() else 0.0,
        "own_probability": has_probability,
        "crps": crps(scores.crps),
        "spectral_ratio": float(scores.detail[0] / scores.detail[1]),
    }
