"""Loss: base of the losses as modules, and of a user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from daskdl.errors import ShapeError
from daskdl.nn.core.module import Module
from daskdl.nn.core.operation import add_example, arguments_of
from daskdl.tensor import Tensor

__all__ = ["Loss"]


class Loss(Module):
    """Called as ``loss(prediction, target, sample_weight=None)``, it returns a scalar.

    The scalar is the mean over the samples of the batch, the first axis of all arrays, each with
    its weight; :mod:`daskdl.ops.losses.reduction` says how, and why shards then add up.

    Examples
    --------
    >>> class Quartic(Loss):
    ...     def forward(self, prediction, target, sample_weight=None):
    ...         return ((prediction - target) ** 4).mean()
    >>> from daskdl.tensor import Tensor
    >>> float(Quartic()(Tensor([1.0, 3.0]), np.array([0.0, 1.0])))
    8.5
    """

    #: Whether a sample is compared with all samples of an iteration. In a fit ``others`` then are
    #: the predictions of the shards before this one and behind it, two lists of tuples of arrays.
    whole_batch: ClassVar[bool] = False

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare a prediction with its target.

        Parameters
        ----------
        prediction : Tensor or array (N, ...)
        target : array (N, ...)
        sample_weight : array (N,), optional
            What each sample counts; 1 by default.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define forward()")


class OperationLoss(Loss):
    """Base of the losses that are one operation of :mod:`daskdl.ops.losses`.

    Prediction and target have one shape, unless a loss says something else. Subclasses name the
    operation, whose settings are the constructor's arguments, kept as attributes, and say how many
    predictions it compares, which come as a tuple; 0 is one alone. The ``value`` of the loss of two
    small arrays becomes the example in the docstring.
    """

    _operation: ClassVar[Callable[..., Any]]
    _settings: ClassVar[tuple[str, ...]]
    _several: ClassVar[int]

    def __init_subclass__(
        cls,
        *,
        operation: Callable[..., Any] | None = None,
        several: int = 0,
        value: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if operation is not None:
            cls._operation, cls._several = staticmethod(operation), several
            cls._settings = arguments_of(cls)
        if value is not None:
            prediction = "np.array([[1.0, 2.0]], np.float32)"
            target = "np.array([[1.5, 1.0]], np.float32)"
            call = f"round(float(nn.{cls.__name__}()(prediction, target)), 4)"
            lines = (f"prediction = {prediction}", f"target = {target}", call)
            add_example(cls, "\n".join(f">>> {line}" for line in lines) + f"\n{value}")

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare a prediction with its target."""
        several = self._several
        predictions = parts(self, prediction, several) if several else (prediction,)
        settings = {name: getattr(self, name) for name in self._settings}
        loss: Tensor = type(self)._operation(
            *predictions, target, **settings, sample_weight=sample_weight
        )
        return loss


def parts(loss: Loss, prediction: Any, n: int) -> tuple[Any, ...]:
    """Return the predictions of a loss that compares several; a ShapeError if there are others."""
    if not isinstance(prediction, (tuple, list)) or len(prediction) != n:
        described = (
            f"{len(prediction)} of them"
            if isinstance(prediction, (tuple, list))
            else f"shape {getattr(prediction, 'shape', None)}"
        )
        raise ShapeError(
            f"{type(loss).__name__}: expected a tuple of {n} predictions, found {described}"
            "; return as many from the model's forward"
        )
    return tuple(prediction)
