"""Nonfinite: the place in a model where the first number was not finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.nested import nested
from daskdl.nn import Module, drawing
from daskdl.nn.core.arguments import as_inputs, call
from daskdl.nn.core.state import arrays, watched
from daskdl.rows import Rows
from daskdl.tensor import no_grad

WHAT_TO_DO = "lower the learning rate, clip the gradient, or look for missing values in the samples"


def finite(values: NDArray[np.float32]) -> bool:
    """Return whether all values are finite; if so, in one pass without memory."""
    with np.errstate(all="ignore"):
        # What is not finite makes the sum so; finite numbers may, too, when they are huge.
        return bool(np.isfinite(np.add.reduce(values)) or np.isfinite(values).all())


def explain(model: Module, batch: Mapping[str, Any], seed: int, loss: float) -> str:
    """Return a sentence that names the first module with a number that is not finite.

    The model has the iteration's weights and gradient. The batch is evaluated once more, with the
    seed of the layers' random numbers. The first module is the one that finishes first; inner
    modules finish before the outer one. If the model's results are finite, the cause is the loss,
    or the last module with a gradient that is not finite, since gradients come from the end.
    """
    wanted = "loss" if not np.isfinite(loss) else "gradient"
    spoilt = [name for name, array in model.state_dict().items() if not finite(array.ravel())]
    gradients = [
        (name, _bad(grad))
        for name, p in model.named_parameters()
        if (grad := p.grad.values if isinstance(p.grad, Rows) else p.grad) is not None
        and not finite(grad.ravel())
    ]
    first, order = _first(model, as_inputs(nested(batch, "x")), seed)
    if spoilt:
        where = f"the weights were not finite before it, first {spoilt[0]}"
    elif first:
        where = f"the first module whose output is not finite is {first}"
    elif wanted == "loss" or not gradients:
        inputs = "; ".join(
            f"{name} has {_bad(batch[name])}" for name in sorted(batch) if _bad(batch[name])
        )
        where = f"the model's output is finite, the loss of it is not{inputs and '; '}{inputs}"
    else:
        # Of modules that are done at the same place, such as none, the last in the model.
        places = {name: i for i, name in enumerate(order)}
        name, described = max(gradients, key=lambda g: places.get(g[0].rpartition(".")[0], -1))
        where = (
            "all modules' outputs are finite; backwards, the first gradient that is not finite is "
            f"that of {name}: {described}"
        )
    value = f"{loss}" if wanted == "loss" else (gradients[0][1] if gradients else "none")
    return f"expected a finite {wanted}, found {value}; {where}; {WHAT_TO_DO}"


def _first(model: Module, x: Any, seed: int) -> tuple[str, list[str]]:
    """Return the first call with a result that is not finite; modules in the order of finishing."""
    culprit: list[str] = []
    order: list[str] = []

    def look(name: str, module: Module, inputs: tuple[Any, ...], result: Any) -> None:
        order.append(name)
        if not culprit and _bad(result):
            kind, before = type(module).__name__, _bad(inputs)
            note = f"its input already had {before}" if before else "its input was finite"
            culprit.append(f"{name or 'the model'} ({kind}): {_bad(result)}; {note}")

    # Running statistics change in a pass: they are put back.
    buffers = model.flat_buffers.copy()
    with no_grad(), drawing(seed), np.errstate(all="ignore"), watched(model, look):
        call(model, x)
    model.flat_buffers[:] = buffers
    return "".join(culprit), order


def _bad(value: Any) -> str:
    """Return how many of a value's numbers are not finite; "" if all are finite."""
    for array in arrays(value):
        numbers = np.asarray(array)
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            wrong = numbers[~np.isfinite(numbers)]
            return f"{wrong.size} of {numbers.size} numbers that are not finite, such as {wrong[0]}"
    return ""
