"""Precision: whether a thread's matrix products are of float32 numbers or of bfloat16's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from daskdl.errors import SettingsError

#: Names of the precisions.
PRECISIONS = ("float32", "bf16")


class _Local(threading.local):
    name = "float32"


_local = _Local()


def precision() -> str:
    """Return the precision of this thread's products."""
    return _local.name


@contextmanager
def computing_in(name: str) -> Iterator[None]:
    """Compute the products of operations inside in a precision; their backward keeps to it.

    Parameters
    ----------
    name : "float32" or "bf16"
        "bf16" rounds what is multiplied to bfloat16 and sums up in float32, in the operations that
        :doc:`the page on precision </precision>` names; all else is float32.
    """
    before, _local.name = _local.name, name
    try:
        yield
    finally:
        _local.name = before


def check_precision(where: str, name: str) -> None:
    """Raise a SettingsError unless there is such a precision."""
    if name not in PRECISIONS:
        near = name in ("bfloat16", "torch.bfloat16", "bf16-mixed", "mixed_bfloat16")
        raise SettingsError(
            f"{where}, precision: expected one of {', '.join(PRECISIONS)}, found {name!r}; "
            + ("write bf16" if near else "leave it out for float32")
        )
