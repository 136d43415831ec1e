"""The learning curve as a picture: what a network gains over S-PROG by the number of events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Scores drawn, with what stands beside the axis.
SCORES = (("csi", "CSI of 1 mm/h"), ("brier", "Brier score of 1 mm/h"), ("crps", "CRPS (mm/h)"))


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the differences to S-PROG with their intervals, a curve for each lead time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    leads = sorted({row["lead_minutes"] for row in rows})
    for axes, (name, title) in zip(figure.subplots(1, len(SCORES)), SCORES, strict=True):
        for n, lead in enumerate(leads):
            mine = sorted(
                (row for row in rows if row["lead_minutes"] == lead), key=lambda row: row["events"]
            )
            at = [row["events"] * (1 + 0.04 * n) for row in mine]
            middle = [row[f"{name}_difference"] for row in mine]
            reach = [
                [abs(row[f"{name}_difference"] - row[f"{name}_difference_{end}"]) for row in mine]
                for end in ("low", "high")
            ]
            axes.errorbar(at, middle, reach, marker="o", capsize=3, label=f"+{lead:.0f} min")
        axes.axhline(0, color="0.4", linewidth=0.8)
        axes.set_xscale("log")
        counts = sorted({row["events"] for row in rows})
        axes.set_xticks(counts, [f"{count:g}" for count in counts])
        axes.minorticks_off()
        axes.set_xlabel("events learned from")
        axes.set_title(f"{title}: network less S-PROG", fontsize=10)
    figure.axes[0].legend(frameon=False)
    figure.savefig(path, dpi=110)
