"""Classifier: a network as a scikit-learn classifier."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from dask import is_dask_collection
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from daskdl.nn import CrossEntropyLoss
from daskdl.sklearn.arrays import computed, each
from daskdl.sklearn.estimator import Estimator

Array = NDArray[Any]


class Classifier(ClassifierMixin, Estimator):
    """A network that classifies rows of numbers.

    The network returns a score for each class; their softmax gives probabilities. The default loss
    is ``CrossEntropyLoss()``. For the rest see :class:`daskdl.sklearn.estimator.Estimator`.

    Attributes
    ----------
    classes_ : array (n_classes,)
        The labels, sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from daskdl.sklearn import Classifier
    >>> X = np.linspace(-1, 1, 64)[:, np.newaxis]
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> Classifier((8,), random_state=0).fit(X, y).predict([[-0.5], [0.5]])
    array(['left', 'right'], dtype='<U5')
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a new network.

        Parameters
        ----------
        X : array_like, dask Array or DataFrame (n, features)
        y : array_like, dask Array or Series (n,)
            Labels of any kind.
        sample_weight : array_like or dask Array (n,), optional
        """
        x, y, weight = self._inputs(X, y, sample_weight)
        if is_dask_collection(y):
            import dask.array as da

            self.classes_ = da.unique(y).compute()
        else:
            check_classification_targets(y)
            y = column_or_1d(y, warn=True)
            self.classes_ = np.unique(y)
        labels = each(partial(np.searchsorted, self.classes_), y)
        return self._fit(x, labels, weight, len(self.classes_), CrossEntropyLoss())

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, float32 (n, n_classes)."""
        return each(partial(softmax, axis=1), self._outputs(X))

    def predict(self, X: Any) -> Any:
        """Return the most probable label of each row, (n,)."""
        scores = self._outputs(X)
        return each(partial(labels_of, self.classes_), scores, drop_axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy."""
        y, predicted, weight = computed(y, self.predict(X), sample_weight)
        return float(accuracy_score(y, predicted, sample_weight=weight))


def labels_of(classes: Array, scores: Array) -> Array:
    """Return the labels (n,) of the largest scores (n, classes)."""
    return classes[scores.argmax(1)]
