"""Partitions of each kind through a Predictor: the tasks of a lazy prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.cluster.failures import at_worker, users_line
from daskdl.data.functions import take
from daskdl.data.nested import flat, has, nested
from daskdl.data.partition import Partition
from daskdl.data.sources.records import warn
from daskdl.errors import DaskdlError, DataError, PredictionError, ShapeError
from daskdl.nn.core.arguments import each, parts_of
from daskdl.predict.arguments import encoder_of, takes_float64
from daskdl.predict.predictor import Predictor

if TYPE_CHECKING:
    import pandas as pd

    from daskdl.data.tabular import TableEncoder

Array = NDArray[Any]


@contextmanager
def naming(partition: int) -> Iterator[None]:
    """Add the partition and the worker to an exception."""
    where = f"prediction, partition {partition}{at_worker()}"
    try:
        yield
    except DaskdlError as error:
        raise type(error)(f"{where}: {error}") from error
    except Exception as error:
        line = users_line(error)
        raise PredictionError(f"{where}: {type(error).__name__}: {error}{line}") from error


def of_chunk(
    chunk: Array, predictor: Predictor, shape: tuple[int, ...], block_id: tuple[int, ...]
) -> Array:
    """Return the results of a chunk (n, ...) of a dask Array, (n, *shape)."""
    with naming(block_id[0]):
        result = only(predictor(chunk))
        if result.shape[1:] != shape:
            raise ShapeError(
                f"expected results of shape {shape} for a sample, as of zeros, found "
                f"{result.shape[1:]}; predict a bag, whose results may differ in shape"
            )
        return result


def of_elements(elements: Iterable[Any], predictor: Predictor, number: Iterable[int]) -> list[Any]:
    """Return the results of the elements of a partition of a Bag, one for each."""
    with naming(next(iter(number))):
        whole = list(elements)
        if not whole:
            return []

        def batch(start: int, stop: int) -> Any:
            # With the first element of all, so that any batch finds elements of another shape.
            return each(lambda a: a[1:], stacked([*whole[:1], *whole[start:stop]]))

        return list(only(predictor.over(batch, len(whole))))


def of_frame(
    frame: pd.DataFrame, predictor: Predictor, partition_info: dict[str, Any] | None = None
) -> pd.DataFrame | pd.Series[Any]:
    """Return the results of the rows of a DataFrame, with its index."""
    if partition_info is None:
        return rows_of(frame, predictor)
    with naming(partition_info["number"]):
        return rows_of(frame, predictor)


def of_samples(
    partition: Partition,
    predictor: Predictor,
    functions: Sequence[Callable[..., Any]],
    number: int,
    nothing: Any = None,
) -> Any:
    """Return the results of a partition of a SampleSet.

    ``nothing`` is the result without samples, since an empty partition may not know its columns.
    """
    warn(partition.bad, len(partition))  # nothing may have counted them before
    if nothing is not None and not len(partition):
        return nothing
    with naming(number):
        inputs = inputs_of(partition, functions, number)
        return predictor.over(inputs, len(partition))


def inputs_of(
    partition: Partition, functions: Sequence[Callable[..., Any]], number: int
) -> Callable[[int, int], Any]:
    """Return a function that returns ``x`` of the samples between two positions."""

    def inputs(start: int, stop: int) -> Any:
        draw = (0, "predict", start, number)
        batch = take(partition, np.arange(start, stop), functions, draw)
        if not has(batch, "x"):
            raise DataError(
                f"predict: expected samples with x, found {sorted(batch)}"
                "; name the array x when the SampleSet is made"
            )
        return nested(batch, "x")

    return inputs


def stacked(elements: Sequence[Any]) -> Any:
    """Return elements of a Bag as inputs: arrays or numbers, or dicts with these as ``x``."""
    by_name = [flat(e) if isinstance(e, dict) else {"x": np.asarray(e)} for e in elements]
    try:
        inputs = [name for name in by_name[0] if name.split(".")[0] == "x"] or ["x"]
        return nested({name: np.stack([e[name] for e in by_name]) for name in inputs}, "x")
    except (KeyError, ValueError) as error:
        shapes = {str(sorted(e) if isinstance(e, dict) else np.shape(e)) for e in elements[:100]}
        raise DataError(
            "predict: expected elements of a Bag that are arrays of one shape, or dicts with such "
            f"an x, found {', '.join(sorted(shapes))}"
        ) from error


def rows_of(frame: pd.DataFrame, predictor: Predictor) -> pd.DataFrame | pd.Series[Any]:
    """Return the results of the rows of a pandas DataFrame, whose columns are the model's inputs.

    One number for each row gives a Series, several give a DataFrame with columns 0, 1, ...
    """
    import pandas as pd

    encoder = encoder_of(predictor.model)
    if encoder is not None:
        result = only(predictor(encoder.inputs(frame)))
        if predictor.layer is None:
            return _named(result, encoder, frame.index)
    else:
        kind = np.float64 if takes_float64(predictor.model) else np.float32
        result = only(predictor(frame.to_numpy(kind)))
    if result.ndim > 2:
        raise DataError(
            f"predict: expected one or several numbers for each row of a DataFrame, found results "
            f"of shape {result.shape}; give the rows as an array, df.to_dask_array(lengths=True)"
        )
    kind = pd.Series if result.ndim == 1 else pd.DataFrame
    return kind(result, index=frame.index)


def _named(result: Array, encoder: TableEncoder, index: Any) -> pd.DataFrame | pd.Series[Any]:
    """Return results in the form of the table's target: scores by label, labels, or numbers."""
    import pandas as pd

    if not encoder.classes:
        return pd.Series(result[:, 0], index=index, name=encoder.target)
    labels = pd.Index(encoder.classes)
    if result.ndim == 2:
        return pd.DataFrame(result, index=index, columns=labels)
    return pd.Series(labels.take(result), index=index, name=encoder.target)


def only(result: Any) -> Array:
    """Return a result that must be one array, for kinds of samples that cannot hold more."""
    if isinstance(result, tuple | dict):
        raise DataError(
            f"predict: expected one array from the model, found {len(result)} of shapes "
            f"{[part.shape for part in parts_of(result)]}; give numpy arrays, or ask for one layer "
            "by embed"
        )
    return result
