"""Scores of events, radars and all events together, and their tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from ci.bench.skill.cases import DETAIL_KM, FSS_KM, JUDGED, PROBABLE, THRESHOLDS, Case
from nowcast.verification.pool import pool
from nowcast.verification.probability import brier_parts, reliability_curve

#: Successive cases that share frames, half an hour apart.
BLOCK = 3
POOL = "all events"
#: The peer's methods.
SPROG, KANADE = "pysteps:sprog", "pysteps:extrapolation"
NOTE = f"""\
CSI of a rain rate at or above {", ".join(f"{t:g}" for t in THRESHOLDS)} mm/h; cal: at 1 mm/h by \
the method's own yes and no, else the field cut where other radars say, and the bias of these;
FSS of the field at 1, 5 and 10 mm/h in windows of {FSS_KM:g} km; Brier score of {PROBABLE:g} mm/h \
(~: a logistic of the field, fitted on other radars);
rel: largest difference of probability and frequency in bins of 1,000 pixels; CRPS in mm/h (of one \
field: its absolute error);
detail: power of the field, or of a member, over that observed at {DETAIL_KM[0]:g} to \
{DETAIL_KM[1]:g} km; s: CPU seconds a start, all leads. All methods on the same pixels and valid \
times."""
HEAD = (
    f"{'':<24}{'CSI .1':>7}{'1':>6}{'5':>6}{'10':>6}{'20':>6}{'cal':>6}{'bias':>6}{'FSS 1':>6}"
    f"{'5':>6}{'10':>6}{'Brier':>8}{'rel':>6}{'CRPS':>7}{'detail':>7}{'s':>6}"
)


@dataclass(frozen=True)
class Results:
    """Scores of all cases, in which :func:`ci.bench.skill.fitted.fill_in` has filled in the rest.

    Parameters
    ----------
    cases : sequence of Case
    methods : sequence of str
    leads : sequence of int
        In minutes.
    """

    cases: Sequence[Case]
    methods: Sequence[str]
    leads: Sequence[int]

    @cached_property
    def radars(self) -> dict[str, str]:
        """The radar of each event."""
        return {case.event: case.radar for case in self.cases}

    def groups(self) -> list[str]:
        """Names of the events, of each radar with several events, and of all."""
        of = list(self.radars.values())
        several = [radar for radar in dict.fromkeys(of) if of.count(radar) > 1]
        return [*self.radars, *several, POOL]

    def of(self, group: str, lead: int) -> list[Case]:
        """Return the cases of a group that are scored at a lead time."""
        i = self.leads.index(lead)
        return [c for c in self.cases if c.scored[i] and group in (c.event, c.radar, POOL)]

    def scores(self, group: str, lead: int, reference: str | None = None) -> xr.Dataset:
        """Return the pooled scores of a group at a lead time, by `nowcast.verification.pool`.

        Forecasters are the methods, and their fields under names like "auto, field". Also
        ``prob_brier`` and ``reliability_error`` of `PROBABLE`, ``detail`` and ``seconds`` (method).
        """
        chosen = self.of(group, lead)
        events = list(dict.fromkeys(case.event for case in chosen))
        scores = pool(
            [case.sums for case in chosen],
            forecasters=[*self.methods, *(f"{name}, field" for name in self.methods)],
            lead_time=np.array(self.leads, "timedelta64[m]").astype("timedelta64[ns]"),
            thresholds=THRESHOLDS,
            scales=(FSS_KM,),
            reference=reference,
            events=[events.index(case.event) for case in chosen],
            block=BLOCK,
        )
        i = self.leads.index(lead)
        sums = sum(case.probability[:, i] for case in chosen)
        forecast, observed = np.moveaxis(sum(case.detail[:, i] for case in chosen), -1, 0)
        more = {
            "prob_brier": [brier_parts(one).score for one in sums],
            "reliability_error": [_reliability_error(one) for one in sums],
            "detail": forecast / observed,
            "seconds": np.mean([case.seconds for case in chosen], 0),
        }
        made = {name: ("method", np.asarray(values)) for name, values in more.items()}
        return scores.isel(lead_time=i, scale=0).assign(made).assign_coords(method=self.methods)

    def lines(self) -> Iterator[str]:
        """Yield the tables: a block for each event and lead, one line a method."""
        for group in self.groups():
            for lead in self.leads:
                yield from ["", f"{group}, +{lead} min, {len(self.of(group, lead))} valid times"]
                yield HEAD
                scores = self.scores(group, lead)
                probable = self.of(group, lead)[0].probable
                for name, own in zip(self.methods, probable, strict=True):
                    yield _line(name, scores, " " if own else "~")
        yield from ["", *NOTE.split("\n")]

    def by_source(self) -> Iterator[str]:
        """Yield a Markdown table of the gains of `auto` and of its motion, by source and in all."""
        gains = [
            (title, ours, peer)
            for title, ours, peer in (
                ("yes/no less S-PROG's", "auto", SPROG),
                ("motion less Lucas-Kanade's", "extrapolation, field", f"{KANADE}, field"),
            )
            if {one.removesuffix(", field") for one in (ours, peer)} <= set(self.methods)
        ]
        if not gains:
            return
        heads = [title for title, *_ in gains]
        of_auto = {"auto", SPROG} <= set(self.methods)
        if of_auto:
            heads += ["bias", "Brier score less S-PROG's", "probabilities off by"]
        yield f"CSI of {PROBABLE:g} mm/h with 95 % intervals; bias of yes/no; {PROBABLE:g} mm/h"
        yield from ["", f"| source | lead | events, times | {' | '.join(heads)} |"]
        yield "|" + "---|" * (len(heads) + 3)
        for source in [*dict.fromkeys(self.radars.values()), POOL]:
            for lead in self.leads:
                chosen = self.of(source, lead)
                events = len({case.event for case in chosen})
                cells = [source, f"+{lead}", f"{events}, {len(chosen)}"]
                for _, ours, peer in gains:
                    scores = self.scores(source, lead, peer).isel(threshold=JUDGED)
                    one = scores.sel(forecaster=ours)
                    gain, low, high = (
                        float(one[f"csi_difference{end}"]) for end in ("", "_low", "_high")
                    )
                    interval = f" [{low:+.3f} {high:+.3f}]" if np.isfinite(low) else ""
                    cells.append(f"{gain:+.3f}{interval}")
                if of_auto:
                    auto, peer = (scores.sel({"method": name}) for name in ("auto", SPROG))
                    cells += [
                        f"{float(scores['bias'].sel(forecaster='auto')):.2f}",
                        f"{float(auto['prob_brier'] / peer['prob_brier']) - 1:+.0%}",
                        f"{float(auto['reliability_error']):.2f}",
                    ]
                yield f"| {' | '.join(cells)} |"


def _reliability_error(sums: np.ndarray) -> float:
    """Return the largest difference of probability and frequency in bins of 1,000 pixels."""
    mean, frequency, count = reliability_curve(sums)
    sure = count >= 1000
    return float(np.abs(mean - frequency)[sure].max()) if sure.any() else 0.0


def _line(method: str, scores: xr.Dataset, mark: str) -> str:
    own, field = (scores.sel(forecaster=name) for name in (method, f"{method}, field"))
    of_method, judged = scores.sel({"method": method}), own.isel(threshold=JUDGED)
    csi = "".join(f"{v:{6 + (k == 0)}.3f}" for k, v in enumerate(field["csi"].values))
    fss = "".join(f"{v:6.3f}" for v in field["fss"].values[1:4])
    return (
        f"{method:<24}{csi}{float(judged['csi']):6.3f}{float(judged['bias']):6.2f}{fss}{mark}"
        f"{float(of_method['prob_brier']):7.4f}{float(of_method['reliability_error']):6.2f}"
        f"{float(field['crps']):7.3f}{float(of_method['detail']):7.2f}"
        f"{float(of_method['seconds']):6.2f}"
    )
