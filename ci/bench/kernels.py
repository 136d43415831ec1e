"""``python -m ci.bench.kernels``: our kernels beside PyTorch's on the same cores."""

from __future__ import annotations

from importlib import import_module

from ci.bench.budgets import budgets, options_of
from ci.bench.report import Row, line, means, write_json
from ci.bench.timing import race

#: Each is a module ``ci.bench.kernels_<family>`` with a function ``cases() -> iterator of Case``.
FAMILIES = (
    "conv2d",
    "optim",
    "recurrent",
    "elementwise",
    "losses",
    "embedding",
    "pooling",
    "norm",
)


def main() -> None:
    """Race the cases and print the table."""
    parser = options_of(__doc__, seconds=1.0)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="may be repeated")
    options = parser.parse_args()

    rows: list[Row] = []
    for threads in budgets(options.threads):
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
