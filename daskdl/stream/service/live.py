"""Live view: a table on a terminal; else a line every half minute and for a new model."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from daskdl.stream.driver.status import PERCENTILES, Status

if TYPE_CHECKING:
    from rich.table import Table

    from daskdl.stream.driver.stream import Stream

#: Seconds between two lines, and between two tables.
LINES, TABLES = 30.0, 0.5


@contextmanager
def shown(wanted: bool) -> Iterator[Callable[[Stream], None]]:
    """Return a function that shows a stream's status on standard error at intervals."""
    last, swapped = [time.monotonic()], [0]

    def due(every: float, swaps: int) -> bool:
        if time.monotonic() - last[0] < every and swaps == swapped[0]:
            return False
        last[0], swapped[0] = time.monotonic(), swaps
        return True

    if not wanted:
        yield lambda stream: None
    elif not sys.stderr.isatty():

        def line(stream: Stream) -> None:
            if due(LINES, stream.status.swaps):
                print(as_line(stream.status), file=sys.stderr, flush=True)

        yield line
    else:
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), auto_refresh=False) as live:

            def table(stream: Stream) -> None:
                if due(TABLES, stream.status.swaps):
                    live.update(as_table(stream.status), refresh=True)

            yield table


def as_line(status: Status) -> str:
    """Return one line of a log."""
    p50, _, p99 = status.latency().percentiles(*PERCENTILES)
    fields = status.as_dict()
    return (
        f"{status.records:,} records, {status.rate:,.0f}/s, lag {sum(status.lag().values()):,}, "
        f"p50 {_ms(p50)}, p99 {_ms(p99)}, {fields['dead_letters']:,} dead letters, "
        f"{len(status.workers)} workers, {_model(status)}"
    )


def as_table(status: Status) -> Table:
    """Return a table with a row for each worker."""
    from rich.table import Table

    p50, p95, p99 = status.latency().percentiles(*PERCENTILES)
    table = Table(
        title=f"{status.records:,} records, {status.rate:,.0f}/s; {_model(status)}",
        caption=f"latency p50 {_ms(p50)}, p95 {_ms(p95)}, p99 {_ms(p99)}",
    )
    for column in (
        "worker",
        "partitions",
        "records",
        "dead letters",
        "lag",
        "read again",
        "p99 ms",
    ):
        table.add_column(column, justify="left" if column == "worker" else "right")
    lag = status.lag()
    for address, report in sorted(status.workers.items()):
        partitions = [f"{topic}/{number}" for topic, number, _, _ in report.positions]
        (own_p99,) = report.histogram().percentiles(99)
        table.add_row(
            address, str(len(partitions)), f"{report.records:,}", f"{report.dead:,}",
            f"{sum(lag.get(p, 0) for p in partitions):,}", str(report.errors),
            _ms(own_p99).removesuffix(" ms"),
        )  # fmt: skip
    return table


def _model(status: Status) -> str:
    """Return the model in use and the number of swaps."""
    times = "once" if status.swaps == 1 else f"{status.swaps} times"
    swapped = f" (swapped {times})" if status.swaps else ""
    return f"model {status.model.name} {status.model.sha256[:12]}{swapped}"


def _ms(latency: float) -> str:
    return "-" if math.isnan(latency) else f"{latency:.1f} ms"
