"""Benchmarks against peers: equal work on both sides, and the rows that they write."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ci import chaos, example_data
from ci.bench import examples, overhead
from ci.bench.training import __main__ as training
from ci.bench.training.cases import NETWORKS, Network
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
def test_the_memory_of_a_contestant_is_measured_in_a_new_process():
    pytest.importorskip("torch")
    assert 20 < training.weighed("ConvLSTM", 1, "ours") < 1000


def test_overhead_steps_of_both_sides_lessen_the_loss():
    pytest.importorskip("torch")
    steps = [*overhead.cases()]
    for case in steps:
        for step in (case.ours, *case.peers.values()):
            losses = [step() for _ in range(30)]
            assert losses[-1] < losses[0]
    assert len(steps) == len(overhead.METHODS)


@pytest.mark.long
def test_writes_a_row_for_each_case(tmp_path, capsys):
    pytest.importorskip("torch")
    file = tmp_path / "rows.json"
    overhead.main(["--seconds", "0", "--only", "Adam", "--json", str(file)])
    rows = json.loads(file.read_text())
    assert [row["name"] for row in rows] == [
        case.name for case in overhead.cases() if "Adam" in case.name
    ]
    assert all(row["threads"] == 1 and row["ratio"] > 0 for row in rows)
    assert "geometric mean" in capsys.readouterr().out


def test_a_row_has_the_last_line_and_the_time(tmp_path, monkeypatch, capsys):
    (tmp_path / "one.py").write_text("import sys\nprint('much')\nprint(*sys.argv[1:])\n")
    monkeypatch.setattr(examples, "ROOT", tmp_path)
    monkeypatch.setattr(examples, "PROGRAMS", ("one.py accuracy 0.5", "two.py"))
    examples.main(["--only", "one", "--json", str(tmp_path / "rows.json")])
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert (row["program"], row["said"]) == ("one.py accuracy 0.5", "accuracy 0.5")
    assert 0 < row["seconds"] < 300
    assert "accuracy 0.5" in capsys.readouterr().out


def test_a_program_that_fails_is_named_with_its_output(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("raise ValueError('no pictures')\n")
    monkeypatch.setattr(examples, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match=r"one\.py a: (?s:.*)no pictures"):
        examples.result("one.py a", tmp_path)


def test_data_that_pip_cannot_download_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(example_data, "downloaded", lambda requirement, folder: None)
    with pytest.raises(RuntimeError, match=r"recbole==1\.2\.1: expected that pip can download it"):
        examples.put_data([f"ncf.py {examples.RATINGS}"], tmp_path)
    examples.put_data(["ncf.py generated"], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("program", examples.PROGRAMS)
def test_the_programs_exist(program):
    assert (examples.ROOT / program.split()[0]).is_file()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.kills
def test_a_trial_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert chaos.main(["--trials", "1", "--seed", "2"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    name, faults, same, *others = last.split()
    assert name == "all"
    assert int(faults) > 0
    assert [same, *others] == ["1", "0", "0", "0"]
