"""``python -m ci.bench.kernels``: our kernels against PyTorch's on the same cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module

from ci.bench.timing import Case, options_of, raced

#: Each is a function ``cases`` of the module ``ci.bench.kernels.<family>``, or ``cases_<family>``
#: of its module in `MODULES`: () -> iterator of Case.
FAMILIES = (
    "conv2d",
    "optim",
    "recurrent",
    "elementwise",
    "losses",
    "embedding",
    "pooling",
    "norm",
    "bfloat16",
    "attention",
)
MODULES = {"embedding": "optim", "pooling": "norm", "bfloat16": "attention"}


def cases(families: Sequence[str]) -> Iterator[Case]:
    """Yield the cases of some families."""
    for family in families:
        module = import_module(f"ci.bench.kernels.{MODULES.get(family, family)}")
        yield from getattr(module, f"cases_{family}" if family in MODULES else "cases")()


def main() -> None:
    """Race the cases and print the table."""
    parser = options_of(__doc__, seconds=1.0)
    parser.add_argument("--family", choices=FAMILIES, action="append", help="may be repeated")
    options = parser.parse_args()
    raced(options, lambda: cases(options.family or FAMILIES))


if __name__ == "__main__":
    main()
