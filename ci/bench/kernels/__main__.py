"""``python -m ci.bench.kernels``: our kernels against PyTorch's on the same cores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pkgutil import resolve_name

from ci.bench.timing import Case, options_of, raced

#: The function of each family's cases: () -> iterator of Case.
FAMILIES = {
    "conv2d": "conv2d:cases",
    "optim": "optim:cases",
    "recurrent": "recurrent:cases",
    "elementwise": "elementwise:cases",
    "losses": "losses:cases",
    "embedding": "optim:cases_embedding",
    "pooling": "norm:cases_pooling",
    "norm": "norm:cases",
    "bfloat16": "attention:cases_bfloat16",
    "attention": "attention:cases",
}


def cases(families: Iterable[str]) -> Iterator[Case]:
    """Yield the cases of some families."""
    for family in families:
        yield from resolve_name(f"ci.bench.kernels.{FAMILIES[family]}")()


def main() -> None:
    """Race the cases and print the table."""
    parser = options_of(__doc__, seconds=1.0)
    parser.add_argument("--family", choices=FAMILIES, action="append", help="may be repeated")
    options = parser.parse_args()
    raced(options, lambda: cases(options.family or FAMILIES))


if __name__ == "__main__":
    main()
