"""Tables of docs/measurements/performance.md: from figures to lines of Markdown."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from ci.bench.engine_control import Row, of_a_turn
from ci.bench.timing import geometric_mean
from ci.figures import figure, published
from daskdl.scaling.measure import PARTS
from daskdl.scaling.workloads import workload

Figure = dict[str, Any]

#: What is predicted: seconds of an iteration's computing, and rates of networks.
SECONDS, MEGABITS = 1.5, (10_000, 25_000)
NETWORKS, NODES = ("inception", "resnet50"), (4, 8, 16, 32, 64, 128, 256)


#: Milliseconds of a message, and the payload's part of a link's rate.
MESSAGE, PAYLOAD = 0.18, 0.936


def predicted(n: int, megabytes: float, megabits: float) -> float:
    """Return the milliseconds of both exchanges by recursive halving and doubling of n hosts."""
    moved = 2 * (n - 1) / n * megabytes  # through each link, each way
    return 2 * math.ceil(math.log2(n)) * MESSAGE + moved * 8000 / (PAYLOAD * megabits)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return a table whose first column is text."""
    lines = [f"| {' | '.join(header)} |", f"|---|{'---:|' * (len(header) - 1)}"]
    return lines + [f"| {' | '.join(map(str, row))} |" for row in rows]


def kernels(found: Figure) -> list[str]:
    """Return a line for each family and number of threads."""
    families: dict[tuple[str, int], list[float]] = {}
    for row in found["rows"]:
        families.setdefault((row["name"].split("/")[0], row["threads"]), []).append(row["ratio"])
    header = ("kernels", "threads", "cases", "PyTorch's time over ours, geometric mean", "least")
    return table(
        header,
        (
            (name, threads, len(of), f"{geometric_mean(of):.2f}", f"{min(of):.2f}")
            for (name, threads), of in families.items()
        ),
    )


def training(found: Figure) -> list[str]:
    """Return a line for each network and number of threads, and one for all of a number.

    Memory and our own speed in float32 have columns where they were measured.
    """
    rows = found["rows"]
    columns: dict[str, Callable[[Any], str]] = {
        "network": lambda row: row["name"],
        "threads": lambda row: str(row["threads"]),
        "samples/s": lambda row: f"{row['samples_per_second']:.4g}",
        "PyTorch's": lambda row: f"{row['peer_samples_per_second']:.4g}",
        "its way": lambda row: row["peer"],
        "ratio": lambda row: f"{row['ratio']:.2f}",
    }
    if any(row["ours_mb"] is not None for row in rows):
        columns["MB"] = lambda row: _whole(row["ours_mb"])
        columns["PyTorch's MB"] = lambda row: _whole(row["peer_mb"])
    if any(row.get("our_float32_ms") is not None for row in rows):
        columns["of our float32's speed"] = lambda row: (
            f"{row['our_float32_ms'] / row['ours_ms']:.2f}"
        )
    lines = table(tuple(columns), [tuple(text(row) for text in columns.values()) for row in rows])
    rest = " |" * (len(columns) - 6)
    for threads in sorted({row["threads"] for row in rows}):
        mean = geometric_mean([row["ratio"] for row in rows if row["threads"] == threads])
        lines.append(f"| all of them, geometric mean | {threads} | | | | {mean:.2f} |{rest}")
    return lines


def inference(found: Figure) -> list[str]:
    """Return a line for each network, batch and number of threads, and one for all of a number."""
    rows = found["rows"]
    lines = table(
        (
            "network, images or sequences at a time",
            "threads",
            "ours, ms",
            "fastest peer, ms",
            "ratio",
            "peer",
        ),
        (
            (
                row["name"],
                row["threads"],
                f"{row['ours_ms']:.4g}",
                f"{row['peer_ms']:.4g}",
                f"{row['ratio']:.2f}",
                row["peer"],
            )
            for row in rows
        ),
    )
    for threads in sorted({row["threads"] for row in rows}):
        mean = geometric_mean([row["ratio"] for row in rows if row["threads"] == threads])
        lines.append(f"| all of them, geometric mean | {threads} | | | {mean:.2f} | |")
    return lines


def examples(found: Figure) -> list[str]:
    """Return a line for each program: its command and what it said at its end."""
    return table(
        ("program", "its last line", "seconds, all of it"),
        ((f"`{row['program']}`", row["said"], f"{row['seconds']:.0f}") for row in found["rows"]),
    )


def engine(found: Figure) -> list[str]:
    """Return a line for each engine and size."""
    header = ("two workers of one machine", "MB", "ms", "least", "gloo's ms", "gloo's over ours")
    lines = []
    for row in found["rows"]:
        _, size, name = row["name"].split("/")
        times = (f"{row[key]:.2f}" for key in ("ours_ms", "ours_least_ms", "peer_ms", "ratio"))
        lines.append((name, size.removesuffix(" MB"), *times))
    return table(header, lines)


def control(found: Figure) -> list[str]:
    """Return a line for each number of workers."""
    header = (
        "members of a gang", "workers", "iterations of a group", "scheduler, CPU ms an iteration",
        "of it heartbeats", "driver", "part of the time, %", "other work on the machine, %",
    )  # fmt: skip
    names = {"gang": "stay", "forms": "formed anew", "graph": "none: graph engine"}
    return table(
        header,
        (
            (
                names[row["engine"]],
                row["workers"],
                f"{row['iterations']:.0f}",
                f"{row['scheduler']:.1f}",
                f"{row['idle']:.1f}",
                f"{row['driver']:.1f}",
                f"{100 * max(0.0, row['part']):.2f}",
                f"{100 * row['others']:.0f}",
            )
            for row in found["rows"]
        ),
    )


def scaling(found: Figure) -> list[str]:
    """Return a line for each row; times are milliseconds of an iteration."""
    header = ("scaling", "workers", "batch", "samples/s", "ms", *PARTS, "efficiency, %", "cores, %")
    size: tuple[str, ...] = ()
    if (
        found.get("settings", {}).get("simulate") is not None
    ):  # a model's name would say nothing of its size
        header, size = ("gradient, MB", *header), (f"{found['megabytes']:.3g}",)
    return table(
        header,
        (
            (
                *size,
                row["scaling"],
                row["workers"],
                row["batch"],
                f"{row['samples_per_second']:.4g}",
                _ms(row["seconds"]),
                *(_ms(row[f"{part}_seconds"]) for part in PARTS),
                f"{100 * row['efficiency']:.1f}",
                "-" if row["busy"] is None else f"{100 * row['busy']:.0f}",
            )
            for row in found["rows"]
        ),
    )


def prediction() -> list[str]:
    """Return a line for each network and number of nodes: the model's figures, and BigDL's."""
    bigdl = published()
    sync = bigdl["synchronization"]["percent_by_nodes"]
    rates = bigdl["scaling"]["records_per_second_by_nodes"]
    least = min(rates, key=int)
    measured = _control()
    header = (
        "gradient",
        "nodes",
        *(f"exchange at {rate / 1000:g} Gbit/s, ms" for rate in MEGABITS),
        *(f"of {SECONDS:g} s at {rate / 1000:g} Gbit/s, %" for rate in MEGABITS),
        "control, measured, %",
        f"efficiency at {MEGABITS[0] / 1000:g} Gbit/s, %",
        "BigDL: synchronization, %",
        f"BigDL: efficiency against {least} nodes, %",
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
    """Return a line for each number of tasks that BigDL published, and ours."""
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
    """Return the share of an iteration's time that control takes, by workers."""
    found = figure("control")
    if found is None:
        return {}
    return of_a_turn([Row(**row) for row in found["rows"]], SECONDS)


def _ms(seconds: float) -> str:
    if seconds >= 0.1:
        return f"{1000 * seconds:.0f}"
    return f"{1000 * seconds:.3g}" if seconds >= 5e-6 else "0"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


#: From a figure's name, as far as its first hyphen, to its table.
TABLES: dict[str, Callable[[Figure], list[str]]] = {
    "kernels": kernels,
    "training": training,
    "inference": inference,
    "examples": examples,
    "engine": engine,
    "control": control,
    "scaling": scaling,
}

#: Tables that are made of several figures.
COMBINED: dict[str, Callable[[], list[str]]] = {
    "prediction": prediction,
    "scheduling": scheduling,
}
