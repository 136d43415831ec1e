"""The goals of forecasts, and whether they are met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ci.bench.skill.results import POOL, Results, summary
from nowcast.verification.probability import brier_parts, crps

#: Rain rates in mm h-1 of heavy rain, and least observed pixels for a source to be judged.
HEAVY, ENOUGH = (5.0, 10.0, 20.0), 1000
#: CSI by which motion may be below the peer's on a source, and has to be above it over all.
SLACK, WANTED = 0.005, 0.01
#: The peer's methods.
SPROG, KANADE, STEPS = "pysteps:sprog", "pysteps:extrapolation", "pysteps:steps"


class Case(NamedTuple):
    """A goal at one place: the figure, whether it is met, and the gain."""

    place: str  #: source or event, and lead time
    value: str
    met: bool
    gain: float = 0.0


def verdicts(results: Results) -> list[str]:
    """Return one line a goal: "met" or "missed" with the figures, or why it was not judged."""
    made = []
    for goal, needs, check, figures in GOALS:
        missing = [name for name in needs if name not in results.methods]
        if missing:
            made.append(f"  -     {goal}: not judged without {', '.join(missing)}")
            continue
        cases = list(check(results, *needs))
        failures = [f"{case.place} {case.value}" for case in cases if not case.met]
        word = "missed" if failures else "met   "
        made.append(f"{word}  {goal}: {'; '.join(failures) or figures(cases)}")
    return made


def signed(gain: float, low: float, high: float) -> str:
    """Return a difference with its interval in words."""
    return f"{gain:+.3f} [{low:+.3f} {high:+.3f}]"


def _places(results: Results) -> Iterator[tuple[str, int]]:
    for event in results.events():
        for lead in results.leads:
            yield event, lead


def _gained(place: str, gain: float, slack: float = 0.0) -> Case:
    return Case(place, f"{gain:+.3f}", not round(gain, 3) < -slack, gain)


def _compared(lead: int, mine: float, theirs: float, most: float, digits: int) -> Case:
    change = f"({mine / theirs - 1:+.0%})"
    value = f"{mine:.{digits}f} against {theirs:.{digits}f} {change}"
    return Case(f"+{lead}", value, not mine > most * theirs)


def _csi_by_event(results: Results, ours: str, peer: str) -> Iterator[Case]:
    """CSI at 1 mm/h not below the peer's on any event."""
    for event, lead in _places(results):
        mine, theirs = (results.sums(event, name, lead).csi(1.0) for name in (ours, peer))
        yield _gained(f"{event} +{lead}", mine - theirs)


def _calibrated_by_event(results: Results, ours: str, peer: str) -> Iterator[Case]:
    """CSI at 1 mm/h of yes and no at most .01 below the peer's on any event."""
    for event, lead in _places(results):
        mine, theirs = (results.calibrated_csi(event, name, lead, 1.0) for name in (ours, peer))
        yield _gained(f"{event} +{lead}", mine - theirs, 0.01)


def _csi_pooled(results: Results, ours: str, peer: str) -> Iterator[Case]:
    """CSI at 1 mm/h of yes and no above the peer's, over all events."""
    for lead in results.leads:
        gain = results.gain(ours, peer, lead, 1.0)
        yield Case(f"+{lead}", signed(*gain), not gain[0] <= 0)


def _motion(results: Results, ours: str, peer: str) -> Iterator[Case]:
    """CSI at 1 mm/h of the moved frame by source and over all: see `SLACK` and `WANTED`."""
    for lead in results.leads:
        for source in [*dict.fromkeys(results.radars.values()), POOL]:
            gain = results.gain(ours, peer, lead, 1.0, source, cut=False)
            met = not (gain[0] < WANTED if source == POOL else round(gain[0], 3) < -SLACK)
            yield Case(f"{source} +{lead}", signed(*gain), met)


def _brier(results: Results, ours: str, peer: str) -> Iterator[Case]:
    for lead in results.leads:
        mine = brier_parts(results.brier(POOL, ours, lead)[0]).score
        theirs = brier_parts(
            sum(results.logistic_brier(event, peer, lead) for event in results.events())
        ).score
        yield _compared(lead, mine, theirs, 0.9, 4)


def _reliability(results: Results, ours: str) -> Iterator[Case]:
    for lead in results.leads:
        error = float(summary(results, POOL, ours, lead)["reliability_error_1"])
        yield Case(f"+{lead}", f"{error:.3f}", not error > 0.05)


def _crps(results: Results, ours: str, peer: str) -> Iterator[Case]:
    for lead in results.leads:
        mine, theirs = (crps(results.sums(POOL, name, lead).crps) for name in (ours, peer))
        yield _compared(lead, mine, theirs, 0.95, 3)


def _fss(results: Results, ours: str, peer: str) -> Iterator[Case]:
    for event, lead in [*_places(results), *((POOL, lead) for lead in results.leads)]:
        mine, theirs = (results.sums(event, name, lead).fss(1.0) for name in (ours, peer))
        yield _gained(f"{event} +{lead}", mine - theirs)


def _heavy(results: Results, ours: str, peer: str) -> Iterator[Case]:
    """CSI (of field or yes/no, the larger) and FSS of heavy rain not below a peer's."""
    sources = dict.fromkeys(results.radars.values())
    for source, lead, t in product(sources, results.leads, HEAVY):
        mine, theirs = (results.sums(source, name, lead) for name in (ours, peer))
        if sum(mine.counts(t)[::2]) < ENOUGH:
            continue
        csi = max(mine.csi(t), results.calibrated_csi(source, ours, lead, t))
        gains = {"CSI": csi - theirs.csi(t), "FSS": mine.fss(t) - theirs.fss(t)}
        for name, gain in gains.items():
            yield _gained(f"{source} +{lead} {t:g} mm/h {name}", gain)


def _all(cases: Sequence[Case]) -> str:
    return ", ".join(f"{case.place} {case.value}" for case in cases)


def _pooled(cases: Sequence[Case]) -> str:
    pooled = (case for case in cases if case.place.startswith(POOL))
    return _all([case._replace(place=case.place.removeprefix(POOL).lstrip()) for case in pooled])


def _least(cases: Sequence[Case]) -> str:
    worst = min(cases, key=lambda case: case.gain)
    return f"least {worst.value} ({worst.place})"


def _judged(cases: Sequence[Case]) -> str:
    return f"{len(cases) // 2} of source, lead and threshold"


#: Goal, methods that it needs, function for its cases, and text of the figures if all are met.
GOALS: tuple[
    tuple[str, tuple[str, ...], Callable[..., Iterator[Case]], Callable[[Sequence[Case]], str]],
    ...,
] = (
    (
        "extrapolation above persistence on every event (else its motion is at fault)",
        ("extrapolation", "persistence"), _csi_by_event, _least,
    ),
    (
        "extrapolation's CSI of 1 mm/h less pysteps' Lucas-Kanade's: -.005 on a source, .01 of all",
        ("extrapolation", KANADE), _motion, _pooled,
    ),
    (
        "auto at most .01 below pysteps' S-PROG, calibrated CSI 1 mm/h, every event",
        ("auto", SPROG), _calibrated_by_event, _least,
    ),
    (
        "auto above pysteps' S-PROG, calibrated CSI 1 mm/h, all events",
        ("auto", SPROG), _csi_pooled, _all,
    ),
    (
        "Brier score of auto 10 % below the logistic of pysteps' S-PROG, all events",
        ("auto", SPROG), _brier, _all,
    ),
    ("reliability of auto within .05, all events", ("auto",), _reliability, _all),
    (
        "CRPS of 20 members of steps 5 % below that of pysteps' STEPS, all events",
        ("steps", STEPS), _crps, _all,
    ),
    (
        "heavy rain of auto not below pysteps' S-PROG, every source",
        ("auto", SPROG), _heavy, _judged,
    ),
    (
        "heavy rain of auto not below extrapolation, every source",
        ("auto", "extrapolation"), _heavy, _judged,
    ),
    ("FSS of auto not below pysteps' S-PROG", ("auto", SPROG), _fss, _least),
)  # fmt: skip
