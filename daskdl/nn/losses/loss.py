"""Loss, the base of all losses, and MultiLoss, the weighted sum of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, dataclass_transform

from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.module import Module
from daskdl.nn.core.operation import add_example, keep_fields
from daskdl.tensor import Tensor

__all__ = ["Loss", "MultiLoss"]


class Loss(Module):
    """Base of losses: ``loss(prediction, target, sample_weight=None)`` returns a scalar.

    The scalar is the weighted mean over the samples of the batch, the first axis of all arrays;
    see :mod:`daskdl.ops.losses.reduction`, also for why shards add up.

    Examples
    --------
    >>> class Quartic(Loss):
    ...     def forward(self, prediction, target, sample_weight=None):
    ...         return ((prediction - target) ** 4).mean()
    >>> from daskdl.tensor import Tensor
    >>> float(Quartic()(Tensor([1.0, 3.0]), np.array([0.0, 1.0])))
    8.5
    """

    #: Whether a sample is compared with all samples of an iteration. In a fit ``others`` are then
    #: two lists of tuples of arrays: predictions of the shards before this one, and behind it.
    whole_batch: ClassVar[bool] = False

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare a prediction with its target.

        Parameters
        ----------
        prediction : Tensor or array (N, ...)
        target : array (N, ...)
        sample_weight : array (N,), optional
            Weight of each sample; 1 by default.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define forward()")


@dataclass_transform(eq_default=False)
class OperationLoss(Loss):
    """Base of the losses that are one operation of :mod:`daskdl.ops.losses`.

    Prediction and target have one shape, unless a loss documents another. Subclasses name the
    operation; its settings are the constructor's arguments, kept as attributes, or fields of the
    class. ``several`` is the number of predictions in a tuple; 0 means one prediction without a
    tuple. ``targets=0`` means that there is no target. ``value``, the loss of two small arrays,
    becomes the example in the docstring.
    """

    _operation: ClassVar[Callable[..., Any]]
    _settings: ClassVar[tuple[str, ...]]
    _several: ClassVar[int]
    _targets: ClassVar[int]

    def __init_subclass__(
        cls,
        *,
        operation: Callable[..., Any] | None = None,
        several: int = 0,
        targets: int = 1,
        value: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if operation is not None:
            cls._operation, cls._settings = staticmethod(operation), keep_fields(cls)
            cls._several, cls._targets = several, targets
        if value is not None:
            prediction = "np.array([[1.0, 2.0]], np.float32)"
            target = "np.array([[1.5, 1.0]], np.float32)"
            call = f"round(float(nn.{cls.__name__}()(prediction, target)), 4)"
            lines = (f"prediction = {prediction}", f"target = {target}", call)
            add_example(cls, "\n".join(f">>> {line}" for line in lines) + f"\n{value}")

    def forward(self, prediction: Any, target: Any = None, sample_weight: Any = None) -> Tensor:
        """Compare a prediction with its target."""
        several, targets = self._several, (target,) * self._targets
        if targets and target is None:
            raise SettingsError(f"{type(self).__name__}: expected a target, found none; give one")
        predictions = parts(self, prediction, several) if several else (prediction,)
        settings = {name: getattr(self, name) for name in self._settings}
        return type(self)._operation(
            *predictions, *targets, **settings, sample_weight=sample_weight
        )


def parts(loss: Loss, prediction: Any, n: int) -> tuple[Any, ...]:
    """Return the predictions of a loss that compares several; raise ShapeError for others."""
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


class MultiLoss(Loss):
    """The weighted sum of several losses, which share a prediction or have one each.

    Parameters
    ----------
    losses : sequence of Loss, or mapping of names to them
        With names, prediction and target are mappings too; each loss compares the two of its name.
    weights : a number for each, in the same form, optional
        By default 1, also for names that a mapping leaves out.
    paired : bool
        Whether prediction and target are tuples with an item for each loss; otherwise all losses
        compare the same two.

    Raises
    ------
    SettingsError
        When there is no loss, or the weights do not fit.

    Examples
    --------
    >>> from daskdl.nn.losses import L1Loss, MSELoss
    >>> float(MultiLoss([MSELoss(), L1Loss()], [1.0, 0.5])([[2.0]], [[0.0]]))
    5.0
    """

    def __init__(
        self,
        losses: Sequence[Loss] | Mapping[str, Loss],
        weights: Sequence[float] | Mapping[str, float] | None = None,
        paired: bool = False,
    ) -> None:
        self._names: tuple[str, ...] | None = None
        if isinstance(losses, Mapping):
            self._names = tuple(losses)
            weights = _by_name(self._names, weights)
            losses = list(losses.values())
        weights = [1.0] * len(losses) if weights is None else list(weights)  # type: ignore[arg-type]
        if not losses or len(weights) != len(losses):
            raise SettingsError(
                f"MultiLoss: expected a weight for each of at least 1 loss, found {len(losses)} "
                f"losses and weights {weights}"
                "; give as many weights as losses"
            )
        self.losses = list(losses)
        self._weights = weights
        self.paired = paired

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Return the weighted sum of the losses."""
        n = len(self.losses)
        predictions, targets = (prediction,) * n, (target,) * n
        if self._names is not None:
            predictions = tuple(_called(self._names, "predictions", prediction))
            targets = tuple(_called(self._names, "targets", target))
        elif self.paired:
            predictions = parts(self, prediction, n)
            if not isinstance(target, (tuple, list)) or len(target) != n:
                raise ShapeError(
                    f"MultiLoss: expected a tuple of {n} targets, found {type(target).__name__}"
                    "; give a target for each loss"
                )
            targets = tuple(target)
        try:
            terms = [
                weight * (loss(p, t) if sample_weight is None else loss(p, t, sample_weight))
                for weight, loss, p, t in zip(
                    self._weights, self.losses, predictions, targets, strict=True
                )
            ]
        except (TypeError, ValueError) as error:
            one_each = isinstance(prediction, tuple) and isinstance(target, tuple)
            if not one_each or self.paired or self._names is not None:
                raise
            raise ShapeError(
                "MultiLoss: expected one prediction and one target for all losses, found "
                f"{len(prediction)} and {len(target)}; with paired=True each loss has its own"
            ) from error
        total: Tensor = terms[0]
        for term in terms[1:]:
            total = total + term
        return total


def _by_name(names: Sequence[str], weights: Any) -> list[float]:
    """Return a weight for each name."""
    if weights is not None and not (isinstance(weights, Mapping) and weights.keys() <= set(names)):
        raise SettingsError(
            f"MultiLoss: expected weights by the names {list(names)}, found {weights!r}"
            "; give a dict with a number for each"
        )
    return [float((weights or {}).get(name, 1.0)) for name in names]


def _called(names: Sequence[str], kind: str, values: Any) -> list[Any]:
    """Return the value under each name."""
    if len(names) == 1 and not isinstance(values, (Mapping, tuple, list)):
        return [values]  # a single value needs no name
    if not isinstance(values, Mapping) or not set(names) <= values.keys():
        described = sorted(values) if isinstance(values, Mapping) else type(values).__name__
        raise ShapeError(
            f"MultiLoss: expected {kind} called {list(names)}, found {described}; return a dict "
            "from forward, and give y={name: array} to the SampleSet"
        )
    return [values[name] for name in names]
