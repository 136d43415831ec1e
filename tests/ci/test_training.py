"""The training benchmark: both sides have the same network, learn, and are weighed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ci.bench import training
from ci.bench.training_cases import NETWORKS, Network
from daskdl import nn, optim

BY_NAME = {network.name.split()[0]: network for network in NETWORKS}


@pytest.mark.parametrize("name", ["ResNet-50", "Inception-v1", "LeNet-5", "text", "ConvLSTM"])
def test_both_sides_have_as_many_parameters(name):
    torch = pytest.importorskip("torch")
    model, _, _ = BY_NAME[name].ours()
    theirs, _, _ = BY_NAME[name].peer(torch)
    more = sum(p.numel() for p in theirs.parameters())
    # PyTorch's LSTM has a second bias, which is added to the first.
    assert more - model.flat.size == (4 * 128 if name == "text" else 0)


def small() -> Network:
    def peer(torch):
        model = torch.nn.Linear(3, 2)
        return model, torch.nn.functional.cross_entropy, [torch.optim.SGD(model.parameters(), 0.1)]

    return Network(
        "small",
        4,
        lambda: (nn.Linear(3, 2, seed=0), nn.CrossEntropyLoss(), optim.SGD(0.1)),
        peer,
        lambda rng: (rng.normal(size=(4, 3)).astype("f4"), np.array([0, 1, 0, 1])),
    )


def test_steps_of_both_sides_lessen_the_loss():
    pytest.importorskip("torch")
    for step in (small().our_step(), small().peer_step("")):
        losses = [step() for _ in range(5)]
        assert losses == sorted(losses, reverse=True)
        assert losses[-1] < losses[0]


def test_writes_rows_with_both_times_and_memory(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setattr(training, "NETWORKS", (small(),))
    monkeypatch.setattr(
        training, "weighed", lambda name, threads, who, of: {"ours": 1.0}.get(who, 2.0)
    )
    file = tmp_path / "rows.json"
    training.main(["--threads", "1", "--seconds", "0", "--json", str(file)])
    (row,) = json.loads(file.read_text())
    assert row["name"] == "small"
    assert row["ratio"] == pytest.approx(row["peer_ms"] / row["ours_ms"])
    assert row["samples_per_second"] == pytest.approx(4000 / row["ours_ms"])
    assert (row["ours_mb"], row["peer_mb"]) == (1.0, 2.0)
    assert "1 : 2 MB" in capsys.readouterr().out


@pytest.mark.long
def test_a_process_of_its_own_weighs_a_contestant():
    pytest.importorskip("torch")
    assert 20 < training.weighed("ConvLSTM", 1, "ours") < 1000
