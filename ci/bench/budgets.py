"""Benchmarks beside PyTorch: options, threads of both, and the table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ci.bench.report import HEADER, Row, line, means, write_json
from ci.bench.timing import Case, race
from daskdl.kernels.runtime.threads import available_cores, thread_budget


def options_of(description: str, seconds: float) -> argparse.ArgumentParser:
    """Return a parser of threads, seconds and the file for the rows."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--threads", default=f"1,{min(2, available_cores())}", help="such as 1,2")
    help_text = "of each contestant of a case"
    parser.add_argument("--seconds", type=float, default=seconds, help=help_text)
    parser.add_argument("--json", type=Path, help="file for the rows")
    return parser


def budgets(threads: str, quiet: bool = False) -> Iterator[int]:
    """Yield the numbers of threads that were asked for, each while both sides have so many."""
    import torch

    if not quiet:
        print(f"PyTorch {torch.__version__}; ratio: its time over ours, least and median of runs")
        print(HEADER)
    for n in sorted({int(n) for n in threads.split(",")}):
        torch.set_num_threads(n)
        with thread_budget(n):
            yield n


def raced(options: argparse.Namespace, cases: Callable[[], Iterable[Case]]) -> None:
    """Race the cases on each number of threads, print the table, and write it where asked."""
    rows: list[Row] = []
    for threads in budgets(options.threads):
        for case in cases():
            rows.append(Row.of(case.name, threads, race(case, options.seconds)))
            print(line(rows[-1]), flush=True)
    print(*means(rows), sep="\n")
    if options.json:
        write_json(rows, options.json)
