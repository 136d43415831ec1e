"""``python -m ci.bench.kernels``: our kernels beside PyTorch's on the same cores."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from ci.bench.report import HEADER, Row, line, means, write_json
from ci.bench.timing import race
from daskdl.kernels.threads import available_cores, thread_budget

#: Each is a module ``ci.bench.kernels_<family>`` with a function ``cases() -> iterator of Case``.
FAMILIES = ("conv2d", "optim", "recurrent", "elementwise", "embedding", "pooling", "norm")


def main() -> None:
    """Race the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="may be repeated")
    parser.add_argument("--threads", default=f"1,{min(2, available_cores())}", help="such as 1,2")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each contestant of a case")
    parser.add_argument("--json", type=Path, help="file for the rows")
    options = parser.parse_args()

    import torch

    print(f"PyTorch {torch.__version__}; ratio: PyTorch's time over ours, least and median of runs")
    print(HEADER)
    rows: list[Row] = []
    for threads in sorted({int(n) for n in options.threads.split(",")}):
        torch.set_num_threads(threads)
        with thread_budget(threads):
            for family in options.family or FAMILIES:
                for case in import_module(f"ci.bench.kernels_{family}").cases():
                    if options.only in case.name:
                        rows.append(Row.of(case.name, threads, race(case, options.seconds)))
                        print(line(rows[-1]), flush=True)
    print(*means(rows), sep="\n")
    if options.json:
        write_json(rows, options.json)


if __name__ == "__main__":
    main()
