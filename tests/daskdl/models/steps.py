"""Checks of a training step and of a model file, for the tests of all models of the zoo."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.nn import CrossEntropyLoss, Module, load, save


def gradient_is_right(
    model: Module, x: Any, classes: int = 2, loss: Any = None, labels: Any = None
) -> None:
    """Assert that a small step down the gradient lessens the loss by about the predicted part.

    Every parameter has to have a gradient.
    """
    loss = loss or CrossEntropyLoss()
    labels = np.arange(len(x)) % classes if labels is None else labels
    model.zero_grad()
    before = loss(model(x), labels)
    before.backward()
    without_gradient = {name for name, p in model.named_parameters() if not p.grad.any()}
    assert not without_gradient
    gradient = model.flat_grad.astype(np.float64)
    part = 1e-3 * float(before) / (gradient @ gradient)  # of the loss, to first order
    model.load_flat((model.flat - part * gradient).astype(np.float32))
    fall = 1 - float(loss(model(x), labels)) / float(before)
    assert 0.5e-3 < fall < 1.5e-3


def file_brings_back(model: Module, x: Any, path: Any) -> None:
    """Assert that a model file gives the same logits."""
    save(model, path)
    restored = load(path)
    assert type(restored) is type(model)
    actual, expected = restored.eval()(x), model.eval()(x)
    parts = (actual, expected) if isinstance(actual, tuple) else ((actual,), (expected,))
    for one, other in zip(*parts, strict=True):
        assert np.array_equal(one.data, other.data)
