"""Watching a model: a callback is given the inputs and the result of each module."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from daskdl.nn.structure import Structure
from daskdl.tensor import Tensor

#: Function of a module's dotted name, the module, its inputs and its result.
Watcher = Callable[[str, Any, tuple[Any, ...], Any], None]


@contextmanager
def watched(model: Structure, watcher: Watcher) -> Iterator[None]:
    """Call ``watcher`` whenever a module of ``model`` has computed its result, innermost first.

    A module that has several names goes by the last of them.
    """

    def watch(name: str, module: Structure) -> None:
        forward = module.forward

        def watching(*inputs: Any, **settings: Any) -> Any:
            result = forward(*inputs, **settings)
            watcher(name, module, (*inputs, *settings.values()), result)
            return result

        module.__dict__["forward"] = watching  # goes before that of the class

    modules = {id(m): (n, m) for n, m in model.modules()}
    for name, module in modules.values():
        watch(name, module)
    try:
        yield
    finally:
        for _, module in modules.values():
            module.__dict__.pop("forward", None)


def arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays in what a module was given or returned: tensors, arrays, several of them."""
    if isinstance(value, Tensor):
        yield value.data
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays(part)
    elif isinstance(value, Mapping):
        yield from arrays(tuple(value.values()))
    elif hasattr(value, "dtype"):
        yield value


def bytes_of(value: Any) -> Iterator[int]:
    """Yield the size of each array in what a module returned, computed or not."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from bytes_of(part)
    elif isinstance(value, Mapping):
        yield from bytes_of(tuple(value.values()))
    elif hasattr(value, "dtype"):
        yield math.prod(value.shape) * value.dtype.itemsize
