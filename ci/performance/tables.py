"""Tables of docs/measurements/performance.md: lines of Markdown from figures."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from ci.bench.engine.control import Row, of_a_turn
from daskdl.scaling.measure import PARTS
from daskdl.scaling.workloads import workload

Figure = dict[str, Any]
#: Folder of the figures; each has its command, date and machine.
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "figures"

#: Predictions: seconds of computation in an iteration, and rates of the network in Mbit/s.
SECONDS, MEGABITS = 1.5, (10_000, 25_000)
NETWORKS, NODES = ("inception", "resnet50"), (4, 8, 16, 32, 64, 128, 256)

#: Milliseconds of a message, and the payload's part of a link's rate.
MESSAGE, PAYLOAD = 0.18, 0.936


def figure(name: str) -> dict[str, Any] | None:
    """Return a figure; None if it has not been measured."""
    file = FOLDER / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def published() -> dict[str, Any]:
    """Return the figure of numbers that BigDL's authors have published."""
    numbers: dict[str, Any] = json.loads((FOLDER / "bigdl.json").read_text(encoding="utf-8"))
    return numbers


def predicted(n: int, megabytes: float, megabits: float) -> float:
    """Return the milliseconds of both exchanges of n hosts, by recursive halving and doubling."""
    moved = 2 * (n - 1) / n * megabytes  # through each link, in each direction
    return 2 * math.ceil(math.log2(n)) * MESSAGE + moved * 8000 / (PAYLOAD * megabits)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return a table whose first column is text."""
    lines = [f"| {' | '.join(header)} |", f"|---|{'---:|' * (len(header) - 1)}"]
    return lines + [f"| {' | '.join(map(str, row))} |" for row in rows]


def columns(rows: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> list[str]:
    """Return a table of rows; ``texts`` has for each column its name and a format of a row."""
    return table(tuple(texts), ([text.format(**row) for text in texts.values()] for row in rows))


def by_threads(rows: Sequence[Mapping[str, Any]], before: str, after: str) -> Iterator[str]:
    """Yield a line for each number of threads, with the geometric mean of the ratios."""
    for threads in sorted({row["threads"] for row in rows}):
        mean = geometric_mean([row["ratio"] for row in rows if row["threads"] == threads])
        yield f"| all of them, geometric mean | {threads} |{before} {mean:.2f} |{after}"


def kernels(figures: Figure) -> list[str]:
    """Return a line for each family and number of threads."""
    families: dict[tuple[str, int], list[float]] = {}
    for row in figures["rows"]:
        families.setdefault((row["name"].split("/")[0], row["threads"]), []).append(row["ratio"])
    header = ("kernels", "threads", "cases", "PyTorch's time over ours, geometric mean", "least")
    return table(
        header,
        (
            (name, threads, len(of), f"{geometric_mean(of):.2f}", f"{min(of):.2f}")
            for (name, threads), of in families.items()
        ),
    )


def training(figures: Figure) -> list[str]:
    """Return a line for each network and number of threads, and means by number of threads.

    Memory and our own speed in float32 have columns where they were measured.
    """
    rows = [
        {
            **row,
            "mb": _whole(row["ours_mb"]),
            "their_mb": _whole(row["peer_mb"]),
            "float32": (row.get("our_float32_ms") or 0) / row["ours_ms"],
        }
        for row in figures["rows"]
    ]
    texts = {
        "network": "{name}",
        "threads": "{threads}",
        "samples/s": "{samples_per_second:.4g}",
        "PyTorch's": "{peer_samples_per_second:.4g}",
        "its way": "{peer}",
        "ratio": "{ratio:.2f}",
    }
    if any(row["ours_mb"] is not None for row in rows):
        texts |= {"MB": "{mb}", "PyTorch's MB": "{their_mb}"}
    if any(row["float32"] for row in rows):
        texts["of our float32's speed"] = "{float32:.2f}"
    rest = " |" * (len(texts) - 6)
    return [*columns(rows, texts), *by_threads(rows, " | | |", rest)]


def inference(figures: Figure) -> list[str]:
    """Return a line for each network, batch and number of threads, and means by threads."""
    texts = {
        "network, images or sequences at a time": "{name}",
        "threads": "{threads}",
        "ours, ms": "{ours_ms:.4g}",
        "fastest peer, ms": "{peer_ms:.4g}",
        "ratio": "{ratio:.2f}",
        "peer": "{peer}",
    }
    return [*columns(figures["rows"], texts), *by_threads(figures["rows"], " | |", " |")]


def examples(figures: Figure) -> list[str]:
    """Return a line for each program: its command and its last line of output."""
    texts = {"program": "`{program}`", "its last line": "{said}"}
    return columns(figures["rows"], texts | {"seconds, all of it": "{seconds:.0f}"})


def engine(figures: Figure) -> list[str]:
    """Return a line for each engine and size."""
    texts = {
        "two workers of one machine": "{name[2]}",
        "MB": "{name[1]}",
        "ms": "{ours_ms:.2f}",
        "least": "{ours_least_ms:.2f}",
        "gloo's ms": "{peer_ms:.2f}",
        "gloo's over ours": "{ratio:.2f}",
    }
    names = [row["name"].replace(" MB", "").split("/") for row in figures["rows"]]
    return columns([r | {"name": n} for r, n in zip(figures["rows"], names, strict=True)], texts)


def control(figures: Figure) -> list[str]:
    """Return a line for each number of workers."""
    texts = {
        "members": "{engine}",
        "workers": "{workers}",
        "iterations of a group": "{iterations:.0f}",
        "scheduler, CPU ms an iteration": "{scheduler:.1f}",
        "of it heartbeats": "{idle:.1f}",
        "driver": "{driver:.1f}",
        "part of the time, %": "{part:.2f}",
        "other work, %": "{others:.0f}",
    }
    names = {"gang": "stay", "forms": "formed anew", "graph": "none: graph engine"}
    rows = [
        row
        | {
            "engine": names[row["engine"]],
            "part": 100 * max(0.0, row["part"]),
            "others": 100 * row["others"],
        }
        for row in figures["rows"]
    ]
    return columns(rows, texts)


def scaling(figures: Figure) -> list[str]:
    """Return a line for each row; times are milliseconds of an iteration."""
    texts = {name: f"{{{name}}}" for name in ("scaling", "workers", "batch")}
    texts |= {"samples/s": "{samples_per_second:.4g}", "ms": "{seconds}"}
    texts |= {part: f"{{{part}_seconds}}" for part in PARTS}
    texts |= {"efficiency, %": "{efficiency:.1f}", "cores, %": "{busy}"}
    # A simulated model waits and does not compute: show the size of its gradient.
    if figures.get("settings", {}).get("simulate") is not None:
        texts = {"MB": f"{figures['megabytes']:.3g}"} | texts
    rows = [
        row
        | {key: _ms(row[key]) for key in ("seconds", *(f"{part}_seconds" for part in PARTS))}
        | {
            "efficiency": 100 * row["efficiency"],
            "busy": _whole(row["busy"] and 100 * row["busy"]),
        }
        for row in figures["rows"]
    ]
    return columns(rows, texts)


def prediction() -> list[str]:
    """Return a line for each network and number of nodes: predicted figures, and BigDL's."""
    bigdl = published()
    sync = bigdl["synchronization"]["percent_by_nodes"]
    rates = bigdl["scaling"]["records_per_second_by_nodes"]
    least = min(rates, key=int)
    measured = _control()
    header = (
        "gradient",
        "nodes",
        *(f"{rate / 1000:g} Gbit/s, {unit}" for unit in ("ms", "%") for rate in MEGABITS),
        "control, %",
        "efficiency, %",
        "BigDL synchronization, %",
        "BigDL efficiency, %",
    )
    lines = []
    for name, n in itertools.product(NETWORKS, NODES):
        megabytes = _megabytes(name)
        times = [predicted(n, megabytes, rate) for rate in MEGABITS]
        theirs = name == "inception"
        parts = [ms / 1000 / SECONDS for ms in times]
        part = measured.get(n)
        lines.append(
            (
                f"{name}, {megabytes:.0f} MB",
                n,
                *(f"{ms:.1f}" for ms in times),
                *(f"{100 * of:.1f}" for of in parts),
                "-" if part is None else f"{100 * part:.2f}",
                f"{100 / (1 + parts[0] + (part or 0.0)):.1f}",
                sync.get(str(n), "-") if theirs else "",
                f"{100 * rates[str(n)] / rates[least] * int(least) / n:.0f}"
                if theirs and str(n) in rates
                else "-" * theirs,
            )
        )
    return table(header, lines)


def scheduling() -> list[str]:
    """Return a line for each number of tasks or workers: BigDL's published figures, and ours."""
    measured = _control()
    theirs = published()["scheduling"]["percent_by_tasks"]
    numbers = sorted({*map(int, theirs), *measured})
    return table(
        ("tasks or workers", "BigDL on Spark, %", "a gang's control, %"),
        (
            (n, theirs.get(str(n), "-"), f"{100 * measured[n]:.2f}" if n in measured else "-")
            for n in numbers
        ),
    )


@cache
def _megabytes(name: str) -> float:
    """Return the size of a network's gradient."""
    model, _, _ = workload(name).build()
    return float(model.vector.nbytes / 1e6)


def _control() -> dict[int, float]:
    """Return the measured cost of control as a share of an iteration's time, by workers."""
    measured = figure("control")
    if measured is None:
        return {}
    return of_a_turn([Row(**row) for row in measured["rows"]], SECONDS)


def _ms(seconds: float) -> str:
    if seconds >= 0.1:
        return f"{1000 * seconds:.0f}"
    return f"{1000 * seconds:.3g}" if seconds >= 5e-6 else "0"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


#: Functions of tables by the part of a figure's name before the first hyphen.
TABLES: dict[str, Callable[[Figure], list[str]]] = {
    function.__name__: function
    for function in (kernels, training, inference, examples, engine, control, scaling)
}

#: Tables from several figures.
COMBINED: dict[str, Callable[[], list[str]]] = {
    "prediction": prediction, "scheduling": scheduling
}  # fmt: skip
