"""Training, evaluation and prediction in bfloat16: equal bits, learning, refused settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskdl import nn
from daskdl.data import SampleSet
from daskdl.errors import CheckpointError, SettingsError
from daskdl.kernels.runtime import precision
from daskdl.kernels.tiles import gradient, product
from daskdl.optim import Adam
from daskdl.train import Trainer


def samples(partitions: int = 3) -> SampleSet:
    """Return images of three classes that differ in their means."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 48)
    x = rng.standard_normal((48, 6, 6, 16), np.float32) + y[:, None, None, None].astype(np.float32)
    return SampleSet.from_arrays(x=x, y=y, partitions=partitions)


def network(attention: bool) -> nn.Module:
    """Return convolutions, maybe attention, and a linear layer of at least 16 channels."""
    return nn.Sequential(
        nn.Conv2d(16, 24, 3, 2, padding=1, seed=1),
        nn.BatchNorm(24),
        nn.ReLU(),
        nn.Conv2d(24, 16, 1, seed=2),
        nn.Reshape((9, 16)),
        *([nn.TransformerBlock(16, 1, 32, seed=4)] if attention else []),
        nn.Mean(1),
        nn.Linear(16, 3, seed=5),
    )


def trained(
    precision: str = "bf16", epochs: int = 2, attention: bool = False, **options: Any
) -> Trainer:
    model, loss = network(attention), nn.CrossEntropyLoss()
    trainer = Trainer(model, loss, Adam(1e-2), seed=5, precision=precision)
    trainer.fit(samples(), epochs=epochs, batch_size=12, progress=False, **options)
    return trainer


@pytest.mark.long  # slow where bfloat16 is computed in float32; see ci.bench.accuracy too
def test_it_learns_as_well_as_float32_and_predicts_near_it():
    trainer = trained(epochs=12, attention=True, client=False)
    model, x, y = trainer.model, *(samples(1).head(48)[name] for name in ("x", "y"))
    exact, rounded = model.predict(x), model.predict(x, precision="bf16")
    assert (exact != rounded).any()
    assert np.abs(exact - rounded).max() < 0.03 * np.abs(exact).max()
    assert (rounded.argmax(1) == y).mean() > 0.9
    loss = trainer.evaluate(x, y)["loss"]
    assert loss == pytest.approx(
        float(nn.CrossEntropyLoss()(rounded.astype(np.float32), y)), abs=0.02
    )


def test_unknown_precisions_are_refused():
    for name, hint in (("bfloat16", "write bf16"), ("f8", "leave it out for float32")):
        with pytest.raises(SettingsError, match=f"expected one of float32, bf16, .*{hint}"):
            Trainer(network(True), nn.CrossEntropyLoss(), Adam(1e-2), precision=name)
    with pytest.raises(SettingsError, match="predict, precision: expected one of"):
        network(True).predict(np.zeros((2, 6, 6, 16), np.float32), precision="half")


@pytest.mark.slow
def test_a_checkpoint_is_of_one_precision(tmp_path):
    trained("float32", epochs=1, client=False, checkpoint=tmp_path)
    with pytest.raises(CheckpointError, match="precision"):
        trained(epochs=2, client=False, checkpoint=tmp_path)


@pytest.mark.slow
def test_a_fit_in_tiles_goes_on_without_amx_to_the_same_weights(tmp_path, monkeypatch):
    whole = trained("bf16-tiles", epochs=2, client=False)
    assert whole.computed_in == "bf16-tiles"
    assert (whole.model.vector != trained("float32", client=False).model.vector).any()
    trained("bf16-tiles", epochs=1, client=False, checkpoint=tmp_path)
    for module in (gradient, product):
        monkeypatch.setattr(module, "usable", lambda: False)
    monkeypatch.setattr(precision, "permitted", lambda: False)
    rest = trained("bf16", epochs=2, client=False, checkpoint=tmp_path)
    assert rest.computed_in == "bf16-tiles"
    np.testing.assert_array_equal(rest.model.vector, whole.model.vector)
    assert trained("bf16", epochs=1, client=False).computed_in == "bf16-pairs"
