"""Trace: one pass of an image of zeros, watched, that tells what a network's results see."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.nn.core.arguments import as_arrays, call
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes import rules
from daskdl.predict.scenes.reach import RULES, Array, Field, Operation, Reach, UnknownError
from daskdl.tensor import Tensor, no_grad, watched_operations

__all__ = ["reach_of", "rules"]


def reach_of(
    predictor: Predictor, lengths: tuple[int, ...], channels: int, dtype: Any, exact: bool
) -> tuple[Reach, ...]:
    """Return the reach of a network's result along each axis of an image.

    Parameters
    ----------
    predictor : Predictor
    lengths : tuple of int
        Of the image's axes, which are the model's between those of samples and channels.
    channels : int
    dtype : numpy.dtype
    exact : bool
        Whether the bits have to be those of the whole image; the network's own receptive field
        with no regard to rounding is much smaller.

    Raises
    ------
    SettingsError
        When the network has an operation that sees more than a window.
    """
    image = np.zeros((predictor.few, *lengths, channels), np.result_type(dtype, np.float32))
    image = image.astype(np.float32)
    start = tuple(Reach(Fraction(1), Fraction(0), Fraction(0), 1, 1, n) for n in lengths)
    watch = _Watch(image, Field(tuple(range(1, image.ndim - 1)), start), exact)
    name = type(predictor.model).__name__
    with predictor.at_work(joined=False) as model, no_grad():
        try:
            with watched_operations(watch):
                result = as_arrays(call(model, image))
            if predictor.part is not None:
                result = result[predictor.part]
            return watch.field_of(result).reaches
        except UnknownError as error:
            raise SettingsError(
                f"predict, overlap: expected a network of whose results each sees a window of the "
                f"image, found {name}, {error}; give overlap=n, cells that tiles share with their "
                "neighbours: the result is then defined by the tiles"
            ) from None


class _Watch:
    """Follows an image through the operations of one pass."""

    def __init__(self, image: Array, field: Field, exact: bool) -> None:
        self.exact, self.lengths = exact, [reach.length for reach in field.reaches]
        # With the array, by which an id is known that somebody else has got since.
        self._fields = {id(image): (weakref.ref(image), field)}

    def __call__(
        self, function: Callable[..., Any], inputs: Any, settings: Any, results: Any
    ) -> None:
        """Note the reach of an operation's results."""
        arrays = [value.data if isinstance(value, Tensor) else value for value in inputs]
        fields = [self._known(array) for array in arrays]
        if not any(fields):
            return
        rule = RULES.get(function)
        if rule is None:
            raise UnknownError(f"with {function.__name__.strip('_')}, which may see all of it")
        operation = Operation(arrays, fields, settings, self.lengths, self.exact)
        for result in results:
            field = rule(operation, result.data)
            self._fields[id(result.data)] = weakref.ref(result.data), field

    def _known(self, array: Any) -> Field | None:
        reference, field = self._fields.get(id(array), (None, None))
        return field if reference is not None and reference() is array else None

    def field_of(self, result: Any) -> Field:
        """Return the field of what a model returned."""
        field = self._known(result)
        if field is None or len(field.axes) != len(self.lengths):
            raise UnknownError("whose result is no image, or made without operations")
        if field.axes != tuple(range(1, result.ndim - 1)):
            raise UnknownError(f"whose result {result.shape} has other axes than its input")
        return field
