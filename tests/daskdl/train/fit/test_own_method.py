"""Optim methods of one's own: what they may return, and what is told where they return less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from daskdl.errors import DaskdlError, SettingsError, TrainingError
from daskdl.nn import MSELoss
from daskdl.optim import Method
from daskdl.train import Trainer
from tests.daskdl.train.runs import network, problem

Made = Callable[[Any], Any]


def nothing(of: Any) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Own(Method):
    """Descends along the gradient; the rest is as it is told."""

    first: Made = nothing  # from the number of weights to the first state
    change: Made = field(default=lambda weights: weights)
    state: Made = field(default=lambda state: state)

    def init(self, size: int) -> Any:
        return self.first(size)

    def update(
        self, weights: Any, gradient: Any, state: Any, iteration: int, scale: float = 1.0,
        overwrite: bool = False,
    ) -> Any:  # fmt: skip
        return self.change(weights - np.float32(0.1 * scale) * gradient), self.state(state)

    def rate_at(self, iteration: int, state: Any = None) -> float:
        return 0.1


def fitted(method: Method) -> Trainer:
    trainer = Trainer(network(), MSELoss(), method, seed=5)
    trainer.fit(problem(), epochs=2, batch_size=8, client=False, progress=False)
    return trainer


def test_weights_of_another_dtype_are_rounded_in_each_step() -> None:
    plain, wide = fitted(Own()), fitted(Own(change=lambda w: w.astype(np.float64)))
    assert wide.model.vector.dtype == np.float32
    np.testing.assert_array_equal(wide.model.vector, plain.model.vector)


def test_scalars_and_vectors_are_states() -> None:
    fitted(
        Own(
            first=lambda n: {"count": np.zeros((), np.int64), "mean": np.zeros(n, np.float32)},
            state=lambda s: s | {"count": s["count"] + 1},
        )
    )


@pytest.mark.parametrize(
    ("method", "kind", "said"),
    [
        (Own(first=lambda n: {"m": np.zeros(3)}), SettingsError, r"init: .*found shape \(3,\) as"),
        (Own(first=lambda n: {"m": np.zeros((2, n))}), SettingsError, r"found shape \(2, \d+\) as"),
        (Own(first=lambda n: {"m": 0.0}), SettingsError, "found float as 'm'"),
        (Own(change=lambda w: w[:-1]), TrainingError, r"update: expected new weights of shape"),
        (Own(change=lambda w: None), TrainingError, "found NoneType; return a number for each"),
        (Own(state=lambda s: {"new": 1}), TrainingError, r"a state of \[\], found \['new'\] too"),
        (
            Own(first=lambda n: {"m": np.zeros(n)}, state=lambda s: {"m": s["m"][1:]}),
            TrainingError,
            "expected 'm' as an array of shape",
        ),
    ],
)
def test_what_fits_no_weights_is_told(method: Method, kind: type[DaskdlError], said: str) -> None:
    with pytest.raises(kind, match=said):
        fitted(method)
