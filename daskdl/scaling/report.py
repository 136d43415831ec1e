"""Report: the rows of a sweep as lines of text, as plain data and as a picture."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daskdl.errors import SettingsError, needed
from daskdl.files import replacing
from daskdl.scaling.measure import PARTS, WORK, Row


@contextmanager
def telling(text: str, wanted: bool = True) -> Iterator[None]:
    """Show a status text: animated on a terminal while this lasts, elsewhere as a plain line."""
    if not wanted:
        yield
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield
    else:
        print(text, file=sys.stderr, flush=True)
        yield


#: Short column headings for parts with long names.
SHORT = {"broadcast": "bcast", "scheduling": "sched"}

HEADER = (
    f"{'workers':>7} {'scaling':<7} {'batch':>7} {'samples/s':>10} {'ms':>9}"
    + "".join(f" {SHORT.get(part, part):>8}" for part in PARTS)
    + f" {'effic. %':>8} {'busy %':>6}"
)


def line(row: Row) -> str:
    """Return a row as a line of text; times are milliseconds per iteration."""
    run = row.run
    parts = "".join(f" {1000 * run.parts[part]:>8.2f}" for part in PARTS)
    busy = "-" if run.busy is None else f"{100 * run.busy:.0f}"
    return (
        f"{run.workers:>7} {row.scaling:<7} {run.batch:>7} {run.rate:>10.4g} "
        f"{1000 * run.seconds:>9.2f}{parts} {100 * row.efficiency:>8.1f} {busy:>6}"
    )


def as_dict(row: Row) -> dict[str, Any]:
    """Return a row as a flat dict of plain data."""
    run = row.run
    return {
        "scaling": row.scaling,
        "workers": run.workers,
        "batch": run.batch,
        "iterations": run.iterations,
        "samples_per_second": run.rate,
        "seconds": run.seconds,
        **{f"{part}_seconds": run.parts[part] for part in PARTS},
        "efficiency": row.efficiency,
        "busy": run.busy,
    }


def write_json(path: Path, content: dict[str, Any], rows: Sequence[Row]) -> None:
    """Write the rows and their common facts as JSON."""
    content = {**content, "rows": [as_dict(row) for row in rows]}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def check_place(option: str, path: Path | None) -> None:
    """Raise a SettingsError unless a file can be written to ``path``."""
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SettingsError(
            f"{option}: expected a file in a folder that can be written to, found {str(path)!r}; "
            "make the folder first, or name another"
        )


def check_format(path: Path) -> None:
    """Raise MissingExtraError without matplotlib, SettingsError if it cannot write the format."""
    with needed("plot: expected matplotlib, found it not installed; pip install daskdl[nowcast]"):
        from matplotlib.figure import Figure
    known = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix.removeprefix(".") not in known:
        raise SettingsError(
            f"plot: expected a file that ends in one of {', '.join(known)}, found {str(path)!r}; "
            "name it so"
        )


def draw(rows: Sequence[Row], title: str) -> Any:
    """Return a figure: the parts of an iteration in weak scaling, and both efficiencies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_parts([row for row in rows if row.scaling == "weak"], left)
    _draw_efficiency(rows, right)
    figure.suptitle(title)
    return figure


def write(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's suffix."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=120, format=path.suffix.removeprefix("."))


def _draw_parts(rows: Sequence[Row], ax: Any) -> None:
    from matplotlib import colormaps

    # A worker's own work in blues, costs of parallel work in warm colours.
    cool, warm = colormaps["Blues"], colormaps["OrRd"]
    rest = [part for part in PARTS if part not in WORK]
    colors = {part: cool(0.3 + 0.6 * i / len(WORK)) for i, part in enumerate(WORK)}
    colors |= {part: warm(0.3 + 0.6 * i / len(rest)) for i, part in enumerate(rest)}
    at, bottom = range(len(rows)), [0.0] * len(rows)
    for part in (*WORK, *rest):
        heights = [1000 * row.run.parts[part] for row in rows]
        ax.bar(at, heights, 0.7, bottom, color=colors[part], label=part)
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    ax.set_xticks(at, [str(row.run.workers) for row in rows])
    ax.set(xlabel="workers", ylabel="ms of an iteration", title="Weak scaling: where time goes")
    ax.margins(y=0.05)
    ax.spines[["top", "right"]].set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles[::-1], labels[::-1], frameon=False, fontsize="small",
        loc="center left", bbox_to_anchor=(1.0, 0.5),
    )  # fmt: skip


def _draw_efficiency(rows: Sequence[Row], ax: Any) -> None:
    for scaling, marker in (("weak", "o"), ("strong", "s")):
        of = [row for row in rows if row.scaling == scaling]
        if of:
            ax.plot(
                [row.run.workers for row in of],
                [100 * row.efficiency for row in of],
                marker=marker,
                label=scaling,
            )
    workers = sorted({row.run.workers for row in rows})
    ax.axhline(100, color="0.6", linewidth=0.8)
    ax.set_xscale("log", base=2)
    ax.set_xticks(workers, [str(n) for n in workers])
    ax.minorticks_off()
    ax.set_ylim(0, 1.05 * max(100, *(100 * row.efficiency for row in rows)))
    ax.set(xlabel="workers", ylabel="%", title="Efficiency")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
