"""U-Net and FPN: of any size, two or three axes, and bit for bit the same by tiles."""

import numpy as np
import pytest

from daskdl import Trainer, load, nn, save
from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.metrics import IoU
from daskdl.models import FPN, UNet
from daskdl.optim import Adam

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [(32, 48), (37, 50), (12, 9, 11)])
def test_the_result_is_as_large_as_the_image(size, tmp_path):
    model = UNet(2, 3, (4, 6, 8), axes=len(size))
    x = RNG.normal(size=(2, *size, 2)).astype(np.float32)
    scores = model.predict(x)
    assert scores.shape == (2, *size, 3)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(x), scores)
    loss = nn.FocalLoss()(model(x), np.zeros((2, *size), int))
    loss.backward()
    assert all(np.isfinite(p.grad).all() for _, p in model.named_parameters())


@pytest.mark.parametrize("model", [UNet(1, 2, (4, 8, 16)), FPN(1, 2, (8, 16, 16), width=8)])
def test_tiles_of_an_odd_image_give_the_same_as_the_whole(model):
    scene = RNG.normal(size=(333, 547)).astype(np.float32)
    whole = model.predict(scene[None, ..., None], threads=1)[0]
    tiled = model.predict(scene, tile={0: 128, 1: 256}, threads=1)
    np.testing.assert_array_equal(tiled, whole)


def test_it_learns_discs():
    rng = np.random.default_rng(0)  # so that the discs do not depend on the order of the tests
    y, x = np.mgrid[:160, :160]
    mask = np.zeros((160, 160), np.int64)
    for i, j, r in rng.integers((10, 10, 5), (150, 150, 14), (14, 3)):
        mask |= (y - i) ** 2 + (x - j) ** 2 < r**2
    image = (mask + rng.normal(0, 0.5, mask.shape))[..., None].astype(np.float32)
    samples = SampleSet.from_windows({"x": image, "y": mask}, {0: 32, 1: 32})
    model = UNet(1, 2, (8, 16))
    Trainer(model, nn.FocalLoss(), Adam(0.01)).fit(samples, epochs=12, batch_size=5)
    assert model.evaluate(samples, {"iou": IoU(2, 1)})["iou"] > 0.8


def test_mistakes_are_sentences():
    with pytest.raises(SettingsError, match="filters of a level at least"):
        FPN(1, 2, ())
    with pytest.raises(SettingsError, match="axes 2 or 3"):
        UNet(1, 2, axes=1)
