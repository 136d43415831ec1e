"""Checks of the arguments of predictions and evaluations."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.metrics import Metric, Output


def whole(where: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least ``least`` as Python's own, which a checkpoint can hold."""
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
    """Return metrics by name: the given one, or the class's as in ``mean_absolute_error``.

    A sequence of sequences has those of each of several results, in a tuple. Names that are
    ``taken`` stand for something else; ``where`` begins errors.
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
    """Return a metric by its name; of a list those of an output, by its name and theirs."""
    if not isinstance(metric, (list, tuple)):
        return [(str(name), metric)]
    return [
        (f"{name}_{_snake(type(m).__name__)}", Output(name, m) if isinstance(m, Metric) else m)
        for m in metric
    ]


def wrong(where: str, expected: str, found: Any) -> SettingsError:
    """Return the error about an argument."""
    shown = " ".join(repr(found).split())
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return SettingsError(f"{where}: expected {expected}, found {shown}")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
