"""The goals that forecasts have to meet, and whether they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci.bench.skill.results import POOL, Results, summary
from nowcast.verification.probability import brier_parts, crps

#: Rain rates in mm h-1 of heavy rain, and observed pixels of one that a source is judged by.
HEAVY, ENOUGH = (5.0, 10.0, 20.0), 1000
#: By how much motion may be below the peer's on a source, and has to be above it over all, CSI.
SLACK, WANTED = 0.005, 0.01
#: The peer's methods.
SPROG, KANADE, STEPS = "pysteps:sprog", "pysteps:extrapolation", "pysteps:steps"


def verdicts(results: Results) -> list[str]:
    """Return one line a goal: "met" or "missed", with the figures; or why it was not judged."""
    made = []
    for goal, needs, check in GOALS:
        missing = [name for name in needs if name not in results.methods]
        if missing:
            made.append(f"  -     {goal}: not judged without {', '.join(missing)}")
            continue
        failures, figures = check(results)
        word = "missed" if failures else "met   "
        made.append(f"{word}  {goal}: {'; '.join(failures) or figures}")
    return made


def signed(gain: float, low: float, high: float) -> str:
    """Return a difference with its interval in words."""
    return f"{gain:+.3f} [{low:+.3f} {high:+.3f}]"


def _places(results: Results) -> Iterator[tuple[str, int]]:
    for event in results.events():
        for lead in results.leads:
            yield event, lead


def _csi_by_event(ours: str, peer: str, slack: float, calibrated: bool) -> Check:
    """CSI at 1 mm/h not below the peer's on any event."""

    def check(results: Results) -> tuple[list[str], str]:
        gains = {
            (event, lead): _csi(results, event, ours, lead, 1.0, calibrated)
            - _csi(results, event, peer, lead, 1.0, calibrated)
            for event, lead in _places(results)
        }
        worst = min(gains, key=lambda place: gains[place])
        failures = [
            f"{e} +{lead} {g:+.3f}" for (e, lead), g in gains.items() if round(g, 3) < -slack
        ]
        return failures, f"least {gains[worst]:+.3f} ({worst[0]} +{worst[1]})"

    return check


def _csi_pooled(ours: str, peer: str) -> Check:
    """CSI at 1 mm/h of yes and no above the peer's, over all events."""

    def check(results: Results) -> tuple[list[str], str]:
        gains = {lead: results.gain(ours, peer, lead, 1.0) for lead in results.leads}
        texts = {lead: f"+{lead} {signed(*gain)}" for lead, gain in gains.items()}
        failures = [texts[lead] for lead, (gain, *_) in gains.items() if gain <= 0]
        return failures, ", ".join(texts.values())

    return check


def _motion(ours: str, peer: str) -> Check:
    """CSI at 1 mm/h of the moved frame not below the peer's on any source."""

    def check(results: Results) -> tuple[list[str], str]:
        failures, pooled = [], []
        for lead in results.leads:
            for source in dict.fromkeys(results.radars.values()):
                gain = results.gain(ours, peer, lead, 1.0, source, cut=False)
                if round(gain[0], 3) < -SLACK:
                    failures.append(f"{source} +{lead} {signed(*gain)}")
            gain = results.gain(ours, peer, lead, 1.0, cut=False)
            pooled.append(f"+{lead} {signed(*gain)}")
            if gain[0] < WANTED:
                failures.append(f"{POOL} +{lead} {signed(*gain)}")
        return failures, ", ".join(pooled)

    return check


def _brier(ours: str, peer: str) -> Check:
    def check(results: Results) -> tuple[list[str], str]:
        failures, figures = [], []
        for lead in results.leads:
            mine = brier_parts(results.brier(POOL, ours, lead)[0]).score
            theirs = brier_parts(
                sum(results.logistic_brier(event, peer, lead) for event in results.events())
            ).score
            text = f"+{lead} {mine:.4f} against {theirs:.4f} ({mine / theirs - 1:+.0%})"
            figures.append(text)
            if mine > 0.9 * theirs:
                failures.append(text)
        return failures, ", ".join(figures)

    return check


def _reliability(ours: str) -> Check:
    def check(results: Results) -> tuple[list[str], str]:
        errors = {
            lead: float(summary(results, POOL, ours, lead)["reliability_error_1"])
            for lead in results.leads
        }
        failures = [f"+{lead} {error:.3f}" for lead, error in errors.items() if error > 0.05]
        return failures, ", ".join(f"+{lead} {error:.3f}" for lead, error in errors.items())

    return check


def _crps(ours: str, peer: str) -> Check:
    def check(results: Results) -> tuple[list[str], str]:
        failures, figures = [], []
        for lead in results.leads:
            mine, theirs = (crps(results.sums(POOL, name, lead).crps) for name in (ours, peer))
            text = f"+{lead} {mine:.3f} against {theirs:.3f} ({mine / theirs - 1:+.0%})"
            figures.append(text)
            if mine > 0.95 * theirs:
                failures.append(text)
        return failures, ", ".join(figures)

    return check


def _fss(ours: str, peer: str) -> Check:
    def check(results: Results) -> tuple[list[str], str]:
        gains = {
            (event, lead): results.sums(event, ours, lead).fss(1.0)
            - results.sums(event, peer, lead).fss(1.0)
            for event, lead in [*_places(results), *((POOL, lead) for lead in results.leads)]
        }
        worst = min(gains, key=lambda place: gains[place])
        failures = [f"{e} +{lead} {g:+.3f}" for (e, lead), g in gains.items() if round(g, 3) < 0]
        return failures, f"least {gains[worst]:+.3f} ({worst[0]} +{worst[1]})"

    return check


def _heavy(ours: str, peer: str) -> Check:
    """CSI and FSS of heavy rain, field or yes/no, not below a peer's where there is enough."""

    def check(results: Results) -> tuple[list[str], str]:
        failures, judged = [], 0
        for source in dict.fromkeys(results.radars.values()):
            for lead in results.leads:
                for t in HEAVY:
                    mine, theirs = (results.sums(source, name, lead) for name in (ours, peer))
                    if sum(mine.counts(t)[::2]) < ENOUGH:
                        continue
                    judged += 1
                    csi = max(mine.csi(t), results.calibrated_csi(source, ours, lead, t))
                    gains = {"CSI": csi - theirs.csi(t), "FSS": mine.fss(t) - theirs.fss(t)}
                    failures += [
                        f"{source} +{lead} {t:g} mm/h {name} {gain:+.3f}"
                        for name, gain in gains.items()
                        if round(gain, 3) < 0
                    ]
        return failures, f"{judged} of source, lead and threshold"

    return check


def _csi(
    results: Results, event: str, method: str, lead: int, threshold: float, calibrated: bool
) -> float:
    if calibrated:
        return results.calibrated_csi(event, method, lead, threshold)
    return results.sums(event, method, lead).csi(threshold)


#: Failures in words, and the figures of a goal that is met.
Check = Callable[[Results], tuple[list[str], str]]

GOALS: tuple[tuple[str, tuple[str, ...], Check], ...] = (
    (
        "extrapolation above persistence on every event (else its motion is at fault)",
        ("extrapolation", "persistence"),
        _csi_by_event("extrapolation", "persistence", 0.0, False),
    ),
    (
        "extrapolation's CSI of 1 mm/h less pysteps' Lucas-Kanade's: -.005 on a source, .01 of all",
        ("extrapolation", KANADE),
        _motion("extrapolation", KANADE),
    ),
    (
        "auto at most .01 below pysteps' S-PROG, calibrated CSI 1 mm/h, every event",
        ("auto", SPROG),
        _csi_by_event("auto", SPROG, 0.01, True),
    ),
    (
        "auto above pysteps' S-PROG, calibrated CSI 1 mm/h, all events",
        ("auto", SPROG),
        _csi_pooled("auto", SPROG),
    ),
    (
        "Brier score of auto 10 % below the logistic of pysteps' S-PROG, all events",
        ("auto", SPROG),
        _brier("auto", SPROG),
    ),
    ("reliability of auto within .05, all events", ("auto",), _reliability("auto")),
    (
        "CRPS of 20 members of steps 5 % below that of pysteps' STEPS, all events",
        ("steps", STEPS),
        _crps("steps", STEPS),
    ),
    (
        "heavy rain of auto not below pysteps' S-PROG, every source",
        ("auto", SPROG),
        _heavy("auto", SPROG),
    ),
    (
        "heavy rain of auto not below extrapolation, every source",
        ("auto", "extrapolation"),
        _heavy("auto", "extrapolation"),
    ),
    ("FSS of auto not below pysteps' S-PROG", ("auto", SPROG), _fss("auto", SPROG)),
)
