"""Post-training quantization: int8 layers in a trained model if they change it little."""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError
from daskdl.kernels.int8.scale import scale_of
from daskdl.names import nearest
from daskdl.nn import Graph, Linear, Module, Quantized
from daskdl.nn.quantized import takes_int8
from daskdl.predict import predict
from daskdl.predict.predictor import Predictor, copy_of
from daskdl.quantization.graphs import layers_of, with_int8
from daskdl.quantization.observed import WAYS, Errors, Extremes, Histograms, least_error, percentile

logger = logging.getLogger(__name__)


def quantize(
    model: Module,
    samples: Any,
    *,
    activations: str = "extremes",
    keep: Collection[str] = (),
    ends: bool = False,
    error: float = 0.1,
    tried: int = 8,
    client: Any = None,
) -> Quantized:
    """Return a model with int8 weights: smaller, faster, and nearly as accurate.

    Weights have one scale for each filter. The inputs of an int8 layer are rounded to bytes with a
    fixed scale, chosen from the samples. Products are sums of integers, so that results have the
    same bits on every processor. The first and the last layer stay float32, and so do the layers
    with the largest effect, until the remaining ones change the results by at most ``error``.

    Parameters
    ----------
    model : Module
        A trained model; it is not changed. Layers of a :class:`~daskdl.nn.Graph` have the names of
        their results; for these "dynamic" is "extremes".
    samples : as in :meth:`daskdl.nn.Module.predict`
        A few hundred typical samples.
    activations : "extremes", "percentile", "error" or "dynamic"
        Range of the inputs: all observed numbers; all but one in ten thousand; or the range with
        the least mean square error. "dynamic" gives each input row of a Linear layer its own scale,
        from its largest number, and is "extremes" for Conv2d layers.
    keep : collection of str
        Names of layers, or of modules with all their layers, that stay float32.
    ends : bool
        Whether the first and the last layer become int8, too.
    error : float
        Largest change of the results: its root mean square, relative to the results' own.
    tried : int
        Number of samples to measure each layer's share of the change; with 0 ``error`` is ignored.
    client : distributed.Client, optional
        As in :meth:`daskdl.nn.Module.predict`.

    Returns
    -------
    Quantized
        Its :attr:`~daskdl.nn.Quantized.table` has the decision for each layer.

    Raises
    ------
    SettingsError
        When an argument is not one of the above, or no layer has an int8 counterpart.
    DataError
        When there are no samples, or a layer's inputs are not finite.

    Examples
    --------
    >>> model = nn.Sequential(
    ...     nn.Linear(4, 8, seed=0), nn.ReLU(), nn.Linear(8, 8, seed=1), nn.ReLU(),
    ...     nn.Linear(8, 2, seed=2),
    ... )
    >>> x = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    >>> small = quantize(model, x)
    >>> print(small.table)
    layer     in int8  range of inputs  change
    layers.0  no       -3.77 to 3.07            first
    layers.2  yes      0 to 2.41        1.07 %
    layers.4  no       0 to 0.998               last
    >>> bool(abs(small.predict(x) - model.predict(x)).max() < 0.01)
    True
    """
    if activations not in WAYS:
        raise SettingsError(
            f"quantize, activations: expected one of {', '.join(WAYS)}, found {activations!r}; "
            "leave it out for extremes"
        )
    names = _names(model)
    if not names:
        raise SettingsError(
            "quantize: expected a model with Conv2d or Linear layers, found none in "
            f"{type(model).__name__}; other layers stay float32"
        )
    unchanged = _unchanged([*dict(model.modules()), *names], keep)
    model = copy.deepcopy(model).eval()  # a copy has its own vector of weights
    order, ranges = _ranges(model, names, samples, activations, client)
    if not order:
        raise DataError("quantize: expected samples that reach layers, found none; give some")
    scales: dict[str, Any] = {name: scale_of(*ranges[name]) for name in order}
    if activations == "dynamic":
        modules = dict(model.modules())
        rows = [name for name in order if isinstance(modules.get(name), Linear)]
        scales |= dict.fromkeys(rows, (None, 0))
    why = dict.fromkeys(unchanged & set(order), "kept")
    why |= {order[0]: "first", order[-1]: "last"} if len(order) > 2 and not ends else {}
    candidates = [name for name in order if name not in why]
    shares = _shares(model, candidates, scales, samples, tried) if tried and candidates else {}
    for name in sorted(shares, key=lambda name: -shares[name]):
        if sum(shares[n] for n in candidates if n not in why) <= error**2:
            break
        why[name] = "changes too much"
    table = tuple(
        (name, name not in why, *ranges[name], shares.get(name, -1.0), why.get(name, ""))
        for name in order
    )
    chosen = {name: scales[name] for name in order if name not in why}
    logger.info("quantize: %d of %d layers in int8", len(chosen), len(order))
    return with_int8(model, chosen, table)


def _names(model: Module) -> list[str]:
    """Return the names of layers with an int8 counterpart; in graphs the names of their results.

    A module with several names has the last one, as in ``watched``.
    """
    names = list[str]()
    for name, module in {id(module): (name, module) for name, module in model.modules()}.values():
        if isinstance(module, Graph):
            names += [f"{name}.{n.outputs[0]}" if name else n.outputs[0] for n in layers_of(module)]
        elif takes_int8(module):
            names.append(name)
    return names


def _unchanged(names: Sequence[str], keep: Collection[str]) -> set[str]:
    names = [name for name in names if name]
    for name in keep:
        if name not in names:
            raise SettingsError(
                f"quantize, keep: expected names of layers, such as "
                f"{', '.join(map(repr, nearest(name, names)))}, found {name!r}"
            )
    return {n for n in names if any(n == name or n.startswith(f"{name}.") for name in keep)}


def _ranges(
    model: Module, names: Sequence[str], samples: Any, activations: str, client: Any
) -> tuple[list[str], dict[str, tuple[float, float]]]:
    """Return the layers that are called, in the model's order, and ranges of their inputs."""
    seen = _statistics(Extremes(model, names), samples, client)
    if not len(seen):
        return [], {}
    low, high = np.fmin.reduce(seen[..., 0]), np.fmax.reduce(seen[..., 1])
    called = [i for i in range(len(names)) if not np.isnan(low[i])]
    for i in called:
        if not np.isfinite([low[i], high[i]]).all():
            raise DataError(
                f"quantize: expected finite inputs of layer {names[i]}, found {low[i]} to "
                f"{high[i]}; look for the sample that causes it"
            )
    order = [names[i] for i in called]
    ranges = {names[i]: (float(low[i]), float(high[i])) for i in called}
    if activations not in ("extremes", "dynamic"):
        choose = percentile if activations == "percentile" else least_error
        wide = [(a, b if b > a else a + 1) for a, b in ranges.values()]
        counts = _statistics(Histograms(model, order, wide), samples, client).sum(0)
        for name, one, (a, b) in zip(order, counts, wide, strict=True):
            ranges[name] = choose(one, a, b)
    return order, ranges


def _statistics(model: Module, samples: Any, client: Any) -> NDArray[Any]:
    """Return a model's results as an array in this process."""
    result = predict(model, samples, client=client)
    if hasattr(result, "compute"):
        result = result.compute() if client is None else client.compute(result).result()
    return np.asarray(result)


def _shares(
    model: Module, names: Sequence[str], scales: dict[str, Any], samples: Any, tried: int
) -> dict[str, float]:
    """Return, for each layer rounded alone, the change's share of the results' sum of squares."""
    few = _first(samples, tried)
    sums = np.zeros(len(names) + 1)
    # One layer at a time: each rounded copy of the model takes memory.
    for i, name in enumerate(names):
        errors = Errors(model, [with_int8(copy_of(model), {name: scales[name]})])
        both = Predictor(errors, batch_size=tried)(few).sum(0)
        sums[i], sums[-1] = both[0], both[1]
    return {name: float(s / (sums[-1] or 1.0)) for name, s in zip(names, sums, strict=False)}


def _first(samples: Any, n: int) -> Any:
    """Return the first ``n`` samples, in memory."""
    if hasattr(samples, "head") and not hasattr(samples, "iloc"):
        return samples.head(n)["x"]  # a SampleSet
    if isinstance(samples, (tuple, list)):
        return type(samples)(_first(part, n) for part in samples)
    if isinstance(samples, dict):
        return {name: _first(part, n) for name, part in samples.items()}
    few = samples[:n]
    return few.compute() if hasattr(few, "compute") else np.asarray(few)
