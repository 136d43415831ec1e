"""The state of a network besides its weights: modes, frozen parameters, buffers, random draws."""

from __future__ import annotations

import fnmatch
import itertools
import math
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.names import nearest
from daskdl.nn.core.parameter import Parameter
from daskdl.nn.core.structure import Structure
from daskdl.tensor import Tensor

__all__ = [
    "drawing",
]


def set_requires_grad(model: Structure, names: tuple[str, ...], wanted: bool) -> None:
    """Freeze or unfreeze parameters; the gradients of frozen ones are zero.

    Names are of parameters, or of modules for all their parameters, with wildcards as in a shell;
    by default all parameters. Raises SettingsError, without any change, if a name matches nothing.
    """
    owned = _owned(model)
    chosen = [owned[""]] if not names else []
    for name in names:
        fitting = fnmatch.filter(owned, name)
        if not fitting:
            near = ", ".join(map(repr, nearest(name, filter(None, owned)))) or "(it holds none)"
            raise SettingsError(
                f"{type(model).__name__}: expected the name of a parameter or module in it, such "
                f"as {near}, found {name!r}"
                "; take names from named_parameters(), with * for any letters"
            )
        chosen += [owned[one] for one in fitting]
    for parameter in itertools.chain.from_iterable(chosen):
        parameter.requires_grad = wanted
        if not wanted and parameter.keeps_rows:
            parameter.grad = None
        elif not wanted and parameter.grad is not None:
            parameter.grad[...] = 0


def _owned(model: Structure) -> dict[str, list[Parameter]]:
    """Return the parameters of each name."""
    owned = {prefix: list(module.parameters()) for prefix, module in model.modules()}
    return {**owned, **{name: [parameter] for name, parameter in model.named_parameters()}}


#: Function of a module's dotted name, the module, its inputs and its result.
Watcher = Callable[[str, Any, tuple[Any, ...], Any], None]


@contextmanager
def watched(model: Structure, watcher: Watcher) -> Iterator[None]:
    """Call ``watcher`` after each call of a module of ``model``, innermost first.

    For a module with several names, the last one counts.
    """

    def watch(name: str, module: Structure) -> None:
        forward = module.forward

        def watching(*inputs: Any, **settings: Any) -> Any:
            result = forward(*inputs, **settings)
            watcher(name, module, (*inputs, *settings.values()), result)
            return result

        module.__dict__["forward"] = watching  # hides the class's method

    modules = {id(m): (n, m) for n, m in model.modules()}
    for name, module in modules.values():
        watch(name, module)
    try:
        yield
    finally:
        for _, module in modules.values():
            module.__dict__.pop("forward", None)


def arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays of a module's input or result: tensors, arrays, or several."""
    return (part.data if isinstance(part, Tensor) else part for part in _parts(value))


def bytes_of(value: Any) -> Iterator[int]:
    """Yield the size of each array of a module's result, computed or not."""
    return (math.prod(part.shape) * part.dtype.itemsize for part in _parts(value))


def _parts(value: Any) -> Iterator[Any]:
    """Yield the tensors and arrays of a value, which may hold several."""
    if isinstance(value, (tuple, list, Mapping)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _parts(part)
    elif hasattr(value, "dtype"):
        yield value


_pass = threading.local()


@contextmanager
def drawing(seed: int | Callable[[], int]) -> Iterator[None]:
    """Inside, random numbers of this thread's layers follow from ``seed`` and their order.

    A callable returns the seed at the first draw; most networks do not draw.

    Examples
    --------
    >>> import numpy as np
    >>> from daskdl.nn import Dropout
    >>> layer, x = Dropout(0.5), np.ones((1, 8), np.float32)
    >>> with drawing(1):
    ...     first = layer(x).data
    >>> with drawing(1):
    ...     second = layer(x).data
    >>> bool((first == second).all())
    True
    """
    before = getattr(_pass, "draws", None)
    _pass.draws = [seed, 0]
    try:
        yield
    finally:
        _pass.draws = before


def next_draw() -> tuple[int, int]:
    """Return (seed, counter) of the next draw; outside of :func:`drawing` with the system's seed.

    No two calls under one seed have the same counter.
    """
    draws = getattr(_pass, "draws", None)
    if draws is None:
        draws = _pass.draws = [secrets.randbits(64), 0]
    seed, counter = draws
    if callable(seed):
        seed = draws[0] = seed()
    draws[1] += 1
    return seed, counter


def generator_of_draw() -> np.random.Generator:
    """Return a Generator for the next draw."""
    return np.random.default_rng(next_draw())
