"""The tables of the comparison for a terminal."""

from __future__ import annotations

from ci.bench.skill.results import POOL, Results, summary
from ci.bench.skill.scores import DETAIL_KM, FSS_KM, PROBABLE, THRESHOLDS

#: The peer's methods.
SPROG, KANADE = "pysteps:sprog", "pysteps:extrapolation"
#: Thresholds of the columns of the FSS, in mm h-1.
FSS_AT = (1.0, 5.0, 10.0)
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


def lines(results: Results) -> list[str]:
    """Return the tables: a block for each event and lead, one line a method."""
    made = []
    for event in [*results.events(), *results.pools()]:
        for lead in results.leads:
            cases = int(results.sums(event, results.methods[0], lead).starts)
            made.append("")
            made.append(f"{event}, +{lead} min, {cases} valid times")
            made.append(HEAD)
            made.extend(_line(results, event, method, lead) for method in results.methods)
    return [*made, "", *NOTE.split("\n")]


def _line(results: Results, event: str, method: str, lead: int) -> str:
    scores = results.sums(event, method, lead)
    rest = summary(results, event, method, lead)
    csi = "".join(f"{scores.csi(t):{7 if t == THRESHOLDS[0] else 6}.3f}" for t in THRESHOLDS)
    fss = "".join(f"{scores.fss(t):6.3f}" for t in FSS_AT)
    bias = results.calibrated_bias(event, method, lead, 1.0)
    mark = " " if rest["own_probability"] else "~"
    return (
        f"{method:<24}{csi}{results.calibrated_csi(event, method, lead, 1.0):6.3f}"
        f"{bias:6.2f}{fss}{mark}{rest['brier_1']:7.4f}"
        f"{rest['reliability_error_1']:6.2f}{rest['crps']:7.3f}{rest['spectral_ratio']:7.2f}"
        f"{scores.seconds / scores.starts:6.2f}"
    )


def by_source(results: Results) -> list[str]:
    """Return a Markdown table of the gains of `auto` and of its motion, by source and in all."""
    gains = [
        (title, ours, peer, cut)
        for title, ours, peer, cut in (
            ("yes/no less S-PROG's", "auto", SPROG, True),
            ("motion less Lucas-Kanade's", "extrapolation", KANADE, False),
        )
        if {ours, peer} <= set(results.methods)
    ]
    if not gains:
        return []
    of_auto = "auto" in results.methods
    heads = [title for title, *_ in gains]
    if of_auto:
        heads += ["bias", "Brier score less S-PROG's", "probabilities off by"]
    made = [
        f"CSI of {PROBABLE:g} mm/h with 95 % intervals; bias of yes/no; {PROBABLE:g} mm/h",
        "",
        f"| source | lead | events, times | {' | '.join(heads)} |",
        "|" + "---|" * (len(heads) + 3),
    ]
    for source in [*dict.fromkeys(results.radars.values()), POOL]:
        for lead in results.leads:
            times = int(results.sums(source, results.methods[0], lead).starts)
            cells = [source, f"+{lead}", f"{len(results.of(source))}, {times}"]
            for _, ours, peer, cut in gains:
                gain, low, high = results.gain(ours, peer, lead, PROBABLE, source, cut)
                cells.append(f"{gain:+.3f} [{low:+.3f} {high:+.3f}]")
            if of_auto:
                rest = summary(results, source, "auto", lead)
                theirs = summary(results, source, SPROG, lead)["brier_1"]
                bias = results.calibrated_bias(source, "auto", lead, PROBABLE)
                cells += [f"{bias:.2f}", f"{rest['brier_1'] / theirs - 1:+.0%}"]
                cells.append(f"{rest['reliability_error_1']:.2f}")
            made.append(f"| {' | '.join(cells)} |")
    return made
