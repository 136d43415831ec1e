"""A network that knows handwritten digits 0 to 4 is taught 5 to 9 out of an ONNX file."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import SampleSet, Trainer, nn
from daskdl.interop import onnx
from daskdl.optim import Adam


@pytest.fixture(scope="module")
def digits():
    """Return scikit-learn's 1,797 pictures of 8x8 pixels, (N, 8, 8, 1), and their labels."""
    data = pytest.importorskip("sklearn.datasets").load_digits()
    return (data.images / 16).astype("f4")[..., None], data.target.astype("i8")


@pytest.mark.slow
def test_new_classes_are_learned_and_written(tmp_path, example, digits):
    x, y = digits
    old = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, seed=0), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(128, 32, seed=1), nn.ReLU(), nn.Linear(32, 5, seed=2),
    )  # fmt: skip
    samples = SampleSet.from_arrays(x=x[y < 5], y=y[y < 5], partitions=2)
    trainer = Trainer(old, nn.CrossEntropyLoss(), Adam(1e-3), seed=0)
    trainer.fit(samples, epochs=3, batch_size=32, progress=False)
    onnx.save(old, tmp_path / "old.onnx", (8, 8, 1), channels_first=True)

    images = x[y >= 5].transpose(0, 3, 1, 2)
    np.savez(tmp_path / "data.npz", x=images, y=y[y >= 5] - 5)
    relu = [n.outputs[0] for n in onnx.load(tmp_path / "old.onnx").nodes if n.operator == "Relu"]
    accuracy = example("fine_tune_onnx").fine_tune(
        tmp_path / "old.onnx", tmp_path / "data.npz", relu[-1], tmp_path / "new.onnx", epochs=20
    )
    assert accuracy > 0.9

    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(tmp_path / "new.onnx")
    (scores,) = session.run(None, {"x": images})
    ours = onnx.load(tmp_path / "new.onnx").predict(images)
    np.testing.assert_allclose(scores, ours, atol=1e-4)
    assert (scores.argmax(1) == y[y >= 5] - 5).mean() > 0.9
