"""One step of training, as the tests of all models of the zoo take it."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.nn import CrossEntropyLoss, Module, load, save


def gradient_is_right(
    model: Module, x: Any, classes: int = 2, loss: Any = None, labels: Any = None
) -> None:
    """Assert that a small step down the gradient lessens the loss by about what it promises.

    And that every parameter has a gradient.
    """
    loss = loss or CrossEntropyLoss()
    labels = np.arange(len(x)) % classes if labels is None else labels
    model.zero_grad()
    before = loss(model(x), labels)
    before.backward()
    still = {name for name, p in model.named_parameters() if not p.grad.any()}
    assert not still
    gradient = model.flat_grad.astype(np.float64)
    part = 1e-3 * float(before) / (gradient @ gradient)  # of the loss, to first order
    model.load_flat((model.flat - part * gradient).astype(np.float32))
    fall = 1 - float(loss(model(x), labels)) / float(before)
    assert 0.5e-3 < fall < 1.5e-3


def file_brings_back(model: Module, x: Any, path: Any) -> None:
    """Assert that a model file gives the same logits."""
    save(model, path)
    again = load(path)
    assert type(again) is type(model)
    found, expected = again.eval()(x), model.eval()(x)
    parts = (found, expected) if isinstance(found, tuple) else ((found,), (expected,))
    for one, other in zip(*parts, strict=True):
        assert np.array_equal(one.data, other.data)
