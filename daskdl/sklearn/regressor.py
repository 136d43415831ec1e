"""Regressor: a network as a scikit-learn regressor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from daskdl.nn import MSELoss
from daskdl.predict.arguments import wrong
from daskdl.sklearn.arrays import computed, each
from daskdl.sklearn.estimator import Estimator

Array = NDArray[Any]


class Regressor(RegressorMixin, Estimator):
    """A network that predicts one number or several from rows of numbers.

    The default loss is ``MSELoss()``. For the rest see
    :class:`daskdl.sklearn.estimator.Estimator`.

    Examples
    --------
    >>> import numpy as np
    >>> from daskdl.sklearn import Regressor
    >>> X = np.linspace(-1, 1, 64)[:, np.newaxis]
    >>> regressor = Regressor((32,), random_state=0).fit(X, 2 * X[:, 0])
    >>> bool(regressor.score(X, 2 * X[:, 0]) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a new network.

        Parameters
        ----------
        X : array_like, dask Array or DataFrame (n, features)
        y : array_like, dask Array, Series or DataFrame (n,) or (n, targets)
        sample_weight : array_like or dask Array (n,), optional
        """
        x, y, weight = self._inputs(X, y, sample_weight, y_numeric=True, multi_output=True)
        if y.dtype.kind in "mM":
            raise wrong("Regressor, y", "numbers, such as hours since a moment", str(y.dtype))
        self._single = y.ndim == 1
        targets = each(columns, y, new_axis=1 if self._single else None)
        return self._fit(x, targets, weight, 1 if self._single else y.shape[1], MSELoss())

    def predict(self, X: Any) -> Any:
        """Return predictions, float32 (n,) or (n, targets), in the targets' shape."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self._single else outputs

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R², the share of the targets' variance that the network explains."""
        y, predicted, weight = computed(y, self.predict(X), sample_weight)
        return float(r2_score(y, predicted, sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def columns(y: Array) -> Array:
    """Return targets as float32 (n, targets)."""
    return np.asarray(y, np.float32).reshape(len(y), *(y.shape[1:] or (1,)))
