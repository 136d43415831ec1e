"""The state of a network beside its weights: modes, frozen parameters, buffers, draws."""

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

    The names are those of parameters, or of modules, whose parameters all count, with the wildcards
    of a shell; without, all parameters of the model are meant. Raises
    SettingsError when one fits nothing, and changes nothing then.
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
                "; names are those of named_parameters(), with * for any letters"
            )
        chosen += [owned[one] for one in fitting]
    for parameter in itertools.chain.from_iterable(chosen):
        parameter.requires_grad = wanted
        if not wanted and parameter.keeps_rows:
            parameter.grad = None
        elif not wanted and parameter.grad is not None:
            parameter.grad[...] = 0


def _owned(model: Structure) -> dict[str, list[Parameter]]:
    """Return the parameters that each name stands for."""
    owned = {prefix: list(module.parameters()) for prefix, module in model.modules()}
    return {**owned, **{name: [parameter] for name, parameter in model.named_parameters()}}


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


_pass = threading.local()


@contextmanager
def drawing(seed: int | Callable[[], int]) -> Iterator[None]:
    """Make all that layers of this thread draw inside a function of ``seed`` and their order.

    A callable gives the seed when the first layer draws; most networks have none that does.

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
    """Return (seed, counter) of the next draw; outside of :func:`drawing` the seed is the system's.

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
