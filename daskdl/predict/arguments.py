"""Arguments of predictions and evaluations: checks, and conversion of any input to samples."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import cloudpickle
import numpy as np

from daskdl.data import SampleSet
from daskdl.data.nested import is_nested
from daskdl.data.tabular.encoder import TableEncoder
from daskdl.errors import DataError, SettingsError
from daskdl.metrics import Metric, Output
from daskdl.names import nearest
from daskdl.nn.core.arguments import parts_of
from daskdl.nn.core.graph import Graph


def whole(where: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least ``least`` as Python's int, for checkpoints."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise wrong(where, f"a whole number of at least {least}", value)
    return number


def check_samples(where: str, samples: Any) -> None:
    """Raise a SettingsError unless these are samples."""
    if not isinstance(samples, SampleSet):
        raise wrong(where, "a SampleSet, such as SampleSet.from_arrays(x=x, y=y)", samples)


def metrics_by_name(where: str, metrics: Any, taken: Collection[str]) -> dict[str, Metric]:
    """Return metrics by name: a given one, or the class's, as in ``mean_absolute_error``.

    A sequence of sequences has the metrics of each of several results. Names in ``taken`` are not
    allowed; ``where`` begins errors.
    """
    if isinstance(metrics, (tuple, list)) and metrics and _are_lists(metrics):
        metrics = dict(enumerate(metrics))
    if isinstance(metrics, Mapping):
        named = [pair for name, metric in metrics.items() for pair in _of_output(name, metric)]
    elif isinstance(metrics, Sequence) and not isinstance(metrics, str):
        named = [(_snake(type(metric).__name__), metric) for metric in metrics]
    else:
        raise wrong(f"{where}, metrics", "a list of Metric, or a dict of them by name", metrics)
    for i, (name, metric) in enumerate(named):
        if not isinstance(metric, Metric):
            at = repr(name) if isinstance(metrics, Mapping) else i
            raise wrong(
                f"{where}, metrics[{at}]",
                "a Metric such as daskdl.metrics.ROCAUC(); "
                "Mean(function) is one of a function of each sample",
                metric,
            )
    result = dict(named)
    if len(result) < len(named) or not result.keys().isdisjoint(taken):
        raise SettingsError(
            f"{where}, metrics: expected names that differ from each other and from 'loss' and the "
            f"other columns of a History, found {[name for name, _ in named]}; give a dict of "
            "metrics by name"
        )
    return result


def _are_lists(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (tuple, list)) for value in values)


def _of_output(name: Any, metric: Any) -> list[tuple[str, Any]]:
    """Return (name, metric); for an output's list of metrics one for each, with joined names."""
    if not isinstance(metric, (list, tuple)):
        return [(str(name), metric)]
    return [
        (f"{name}_{_snake(type(m).__name__)}", Output(name, m) if isinstance(m, Metric) else m)
        for m in metric
    ]


def wrong(where: str, expected: str, actual: Any) -> SettingsError:
    """Return the error about an argument."""
    return SettingsError(f"{where}: expected {expected}, found {short(actual)}")


def check_sendable(where: str, parts: Mapping[str, Any]) -> None:
    """Raise a SettingsError for a part, by its name, that cannot be sent to workers."""
    for name, value in parts.items():
        try:
            cloudpickle.dumps(value)
        except Exception as error:
            raise SettingsError(
                f"{where}: expected {name} that can be pickled and sent to workers, found "
                f"{short(value)} ({error}); define it at the top of a module, without locks"
            ) from error


def short(value: object) -> str:
    """Return a value's repr in one line of up to 80 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def as_samples(where: str, data: Any, y: Any = None, model: Any = None) -> SampleSet:
    """Return samples of x and y.

    ``data`` is a SampleSet, an array (maybe of Dask), or a DataFrame of pandas or Dask. For a
    DataFrame ``y`` may be a column's name, by default the target of the model's encoder, which
    workers apply. Raises SettingsError, which begins with ``where``, for anything else.
    """
    if isinstance(data, SampleSet):
        if y is not None:
            wanted = "none with a SampleSet, which has its own"
            if isinstance(y, int):
                wanted += f" (epochs={y} is how often it is seen)"
            raise wrong(f"{where}, y", wanted, y)
        return data
    if y is None and is_frame(data) and (encoder := encoder_of(model)) is not None:
        y = encoder.target
    if isinstance(y, str) and is_frame(data):
        return _of_frame(where, data, y, encoder_of(model))
    if not (hasattr(data, "shape") or isinstance(data, list) or is_nested(data)) or y is None:
        kinds = "a SampleSet, such as SampleSet.from_arrays(x=x, y=y), or X and y"
        if is_frame(data):
            kinds = "the name of the label's column with a DataFrame, y='label'"
        raise wrong(where, kinds, y if is_frame(data) else data)
    return SampleSet.from_arrays(x=_bare(data), y=_bare(y))


def pair(where: str, data: Any, model: Any, y: Any = None) -> SampleSet:
    """Return samples of a SampleSet, of a pair (X, y), or of a DataFrame with the column ``y``."""
    if is_frame(data) and isinstance(y, str):
        return as_samples(where, data, y, model)
    if isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], int):
        return as_samples(where, *data, model)
    return as_samples(where, data, None, model)


def encoder_of(model: Any) -> TableEncoder | None:
    """Return the encoder of a model such as a TabularNet; None without one."""
    encoder = getattr(model, "encoder", None)
    return encoder if isinstance(encoder, TableEncoder) else None


# Functions, not methods: a Graph's parameters may have any name that is not an attribute's.


def takes_float64(model: Any) -> bool:
    """Whether a model is a Graph with a float64 input, so that samples are not rounded."""
    return isinstance(model, Graph) and any(dtype == "float64" for _, dtype, _ in model.inputs)


def fixed_batch(model: Any) -> int | None:
    """Return the fixed number of samples of a Graph; None for any."""
    return model._batch if isinstance(model, Graph) else None


def is_whole(model: Any, inputs: Any) -> bool:
    """Whether inputs of a Graph cannot be cut into batches: a flag, or states (1, N, H)."""
    if not isinstance(model, Graph) or len(model.inputs) < 2:
        return False
    return len({np.shape(part)[:1] for part in parts_of(inputs)}) > 1


def is_frame(value: Any) -> bool:
    """Return whether this is a DataFrame of pandas or Dask."""
    return hasattr(value, "columns") and hasattr(value, "dtypes")


def _of_frame(where: str, frame: Any, y: str, encoder: TableEncoder | None) -> SampleSet:
    if encoder is not None:
        if encoder.target != y:
            raise wrong(f"{where}, y", f"{encoder.target!r}, the model's target", y)
        return SampleSet.from_dataframe(frame, encoder=encoder)
    if y not in frame.columns:
        near = ", ".join(map(repr, nearest(y, map(str, frame.columns))))
        raise DataError(
            f"{where}, y: expected a column of the DataFrame, such as {near}, found {y!r}"
        )
    x = [name for name in frame.columns if name != y]
    words = [n for n in x if getattr(frame[n].dtype, "kind", "O") not in "fiub"]
    if words:
        raise DataError(
            f"{where}: expected columns of numbers, found {words}; TabularNet.of(frame, "
            f"target={y!r}) of daskdl.models is a model that encodes words, dates and gaps"
        )
    return SampleSet.from_dataframe(frame, x=x, y=y)


def _bare(value: Any) -> Any:
    """Return the array of a DataFrame or a Series; any other value unchanged."""
    if hasattr(value, "to_dask_array"):
        return value.to_dask_array()
    return value.to_numpy() if hasattr(value, "to_numpy") and hasattr(value, "iloc") else value
