"""LivePlot draws a fit's history while it trains."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from daskdl import SampleSet, Trainer, nn
from daskdl.errors import SettingsError
from daskdl.optim import SGD
from daskdl.train import Callback, LivePlot

pytest.importorskip("matplotlib")


class Seen(Callback):
    """Keeps what a file held at the end of each epoch."""

    def __init__(self, path):
        self.path, self.pictures = path, []

    def on_epoch_end(self, trainer, epoch, logs):
        self.pictures.append(self.path.read_bytes())


def fit(*callbacks):
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    samples = SampleSet.from_arrays(x=x, y=x[:, :1])
    trainer = Trainer(nn.Linear(3, 1), nn.MSELoss(), SGD(0.1))
    trainer.fit(samples, epochs=3, batch_size=8, callbacks=list(callbacks), progress=False)


@pytest.mark.slow
def test_a_picture_changes_while_it_trains(tmp_path):
    import matplotlib.pyplot as plt

    path = tmp_path / "fit.png"
    seen = Seen(path)
    fit(LivePlot(path, every=0), seen)
    assert all(picture.startswith(b"\x89PNG") for picture in seen.pictures)
    assert len(set(seen.pictures)) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["fit.png"]
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_pictures_are_as_rare_as_is_wanted(tmp_path):
    path = tmp_path / "fit.png"
    seen = Seen(path)
    fit(LivePlot(path, every=1000), seen)
    assert len(set(seen.pictures)) == 1
    assert path.read_bytes() != seen.pictures[0]


def test_without_a_notebook_it_wants_a_file(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with pytest.raises(SettingsError, match=r"a notebook or path=, found neither; LivePlot\('fit"):
        fit(LivePlot())
