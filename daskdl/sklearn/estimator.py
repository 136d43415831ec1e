"""Estimator: common base of Classifier and Regressor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from dask import is_dask_collection
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from daskdl.data import SampleSet
from daskdl.data.nested import is_nested
from daskdl.errors import SettingsError
from daskdl.masked import unmasked
from daskdl.names import named
from daskdl.nn import Linear, Module, ReLU, Sequential
from daskdl.nn.core.arguments import each, parts_of
from daskdl.optim import Adam, Method
from daskdl.predict.arguments import wrong
from daskdl.sklearn.arrays import array_of, no_rows
from daskdl.train import Trainer

Array = NDArray[Any]


class Estimator(BaseEstimator):
    """A network that is fitted to rows of numbers, with the interface of scikit-learn.

    Arrays in memory are fitted and predicted in this process. Dask Arrays and DataFrames stay on
    the cluster of the current client: the network is trained there, and predictions are Dask Arrays
    with the same partitions.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int
        Widths of the hidden layers of a network of linear layers with ReLU between them.
    model : callable, optional
        Makes another network: ``model(n_features, n_outputs, seed) -> Module``, from (N,
        n_features) to (N, n_outputs). If X is a tuple or mapping of arrays, ``n_features`` is the
        same structure of sample shapes.
    loss : callable, optional
        As in :class:`daskdl.train.Trainer`.
    optimizer : Method, optional
        By default ``Adam(1e-3)``.
    epochs : int
    batch_size : int
    random_state : int, RandomState or None
        Seed of the initial weights and the order of samples.

    Attributes
    ----------
    model_ : Module
        The fitted network.
    history_ : History
        History of the fit.
    n_features_in_ : int, or shapes
    feature_names_in_ : array of str
        Names of columns, after a fit to a DataFrame.
    """

    @named
    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (100,),
        *,
        model: Callable[[Any, int, int], Module] | None = None,
        loss: Callable[..., Any] | None = None,
        optimizer: Method | None = None,
        epochs: int = 100,
        batch_size: int = 32,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.epochs = epochs
        self.batch_size = batch_size
        self.random_state = random_state

    def _inputs(self, x: Any, y: Any, sample_weight: Any, **targets: bool) -> tuple[Any, Any, Any]:
        """Check inputs, targets and weights; return them as arrays, in memory or lazy."""
        x, y, sample_weight = (unmasked(type(self).__name__, a) for a in (x, y, sample_weight))
        if is_nested(x):
            self.n_features_in_ = each(lambda a: tuple(a.shape[1:]), x)
            return x, y if is_dask_collection(y) else np.asarray(y), sample_weight
        if not is_dask_collection(x):
            x, y = validate_data(self, x, y, dtype=np.float32, **targets)
            if sample_weight is not None:
                sample_weight = _check_sample_weight(sample_weight, x, dtype=np.float32)
            return x, y, sample_weight
        validate_data(self, no_rows(x), skip_check_array=True)
        weight = None if sample_weight is None else array_of(sample_weight.astype(np.float32))
        return array_of(x.astype(np.float32)), array_of(y), weight

    def _fit(
        self, x: Any, y: Any, sample_weight: Any, outputs: int, loss: Callable[..., Any]
    ) -> Self:
        """Fit a new network to inputs (n, features) and targets."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        make = self._network if self.model is None else self.model
        if isinstance(make, Module):
            raise wrong(f"{type(self).__name__}, model", "a function that makes a Module", make)
        self.model_ = make(self.n_features_in_, outputs, seed)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        optimizer = Adam(1e-3) if self.optimizer is None else self.optimizer
        trainer = Trainer(self.model_, loss if self.loss is None else self.loss, optimizer, seed)
        self.history_ = trainer.fit(
            SampleSet.from_arrays(x=x, y=y, **weight),
            epochs=self.epochs,
            batch_size=self.batch_size,
            client=None if any(map(is_dask_collection, parts_of(x))) else False,
            progress=False,
        )
        return self

    def _network(self, features: Any, outputs: int, seed: int) -> Module:
        if not isinstance(features, int):
            raise SettingsError(
                f"{type(self).__name__}, model: expected one for X of several arrays, found none"
                "; give model=, a function that makes a Module of so many inputs"
            )
        try:
            sizes = [operator.index(n) for n in self.hidden_layer_sizes]
        except TypeError:
            sizes = [0]
        if any(n < 1 for n in sizes):
            raise SettingsError(
                f"{type(self).__name__}, hidden_layer_sizes: expected whole numbers of at least 1, "
                f"found {self.hidden_layer_sizes!r}"
            )
        widths = [features, *sizes, outputs]
        seeds = np.random.SeedSequence(seed).generate_state(len(widths))
        layers: list[Module] = []
        for i, (a, b) in enumerate(pairwise(widths)):
            layers += [Linear(a, b, seed=int(seeds[i])), ReLU()]
        return Sequential(*layers[:-1])

    def _outputs(self, x: Any) -> Any:
        """Return the network's results, an array or a Dask Array (n, outputs)."""
        check_is_fitted(self)
        if is_nested(x):
            return self.model_.predict(x)
        if is_dask_collection(x):
            validate_data(self, no_rows(x), reset=False, skip_check_array=True)
            return self.model_.predict(array_of(x.astype(np.float32)))
        x = unmasked(type(self).__name__, x)
        return self.model_.predict(validate_data(self, x, reset=False, dtype=np.float32))
