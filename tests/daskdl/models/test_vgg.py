"""VGG-16: the published parameters, torchvision's layout, and PyTorch's numbers from it."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.models import VGG16

PLACES = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)


@pytest.mark.long
def test_published_parameters():
    """As torchvision's page has them; drawing so many weights takes a while."""
    assert VGG16().flat.size == 138_357_544


def test_pytorchs_layers_under_torchvisions_names_give_the_same_numbers(torch):
    model = VGG16(5, width=1 / 16, hidden=24).eval()
    held = model.state_dict(names="torch")
    assert held.keys() == {
        f"{name}.{kind}"
        for name in (*(f"features.{k}" for k in PLACES), *(f"classifier.{k}" for k in (0, 3, 6)))
        for kind in ("weight", "bias")
    }
    state = {name: torch.from_numpy(value) for name, value in held.items()}
    x = np.random.default_rng(0).normal(size=(1, 224, 224, 3)).astype(np.float32)
    y = torch.from_numpy(np.moveaxis(x, -1, 1).copy())
    for place in PLACES:
        weight, bias = state[f"features.{place}.weight"], state[f"features.{place}.bias"]
        y = torch.relu(torch.nn.functional.conv2d(y, weight, bias, padding=1))
        if place in (2, 7, 14, 21, 28):
            y = torch.nn.functional.max_pool2d(y, 2)
    y = y.flatten(1)
    for place in (0, 3, 6):
        y = torch.relu(y) if place else y
        y = y @ state[f"classifier.{place}.weight"].T + state[f"classifier.{place}.bias"]
    ours = model.predict(x)
    np.testing.assert_allclose(ours, y.numpy(), rtol=1e-3, atol=1e-4 * np.abs(ours).max())
