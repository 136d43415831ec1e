"""The command, its settings, and the machine that it describes."""

from __future__ import annotations

import json
import platform

import pytest

from daskdl.errors import SettingsError
from daskdl.scaling.command import Settings, run, title
from daskdl.scaling.machine import machine, machines
from daskdl.scaling.workloads import workload


@pytest.mark.slow
def test_waiting_workers_take_the_time_of_their_waiting(tmp_path, capsys) -> None:
    file, picture = tmp_path / "rows.json", tmp_path / "rows.png"
    settings = Settings(
        "lenet", total_batch=64, simulate=0.02, megabytes=0.5, first=2, workers=2, seconds=0.1
    )
    rows = run(settings, file, picture, progress=True)
    assert [(row.scaling, row.run.batch) for row in rows] == [("weak", 128), ("strong", 64)]
    for row, waits in zip(rows, (0.02, 0.01), strict=True):
        parts = row.run.parts
        assert waits <= parts["forward"] + parts["backward"] <= row.run.seconds
    found = json.loads(file.read_text())
    assert found["settings"]["simulate"] == 0.02
    assert found["machines"][0]["workers"] == 2
    assert found["megabytes"] == 0.5
    assert len(found["rows"]) == 2
    assert picture.read_bytes().startswith(b"\x89PNG")
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert out.startswith("a gradient of 0.5 MB, 0.02 s of waiting")
    assert "run 2 of 2: 2 workers, 64 samples an iteration" in err


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"model": "vgg"}, "model: expected one of lenet"),
        ({"engine": "steam"}, "engine: expected one of auto"),
        ({"wire": "int8"}, "wire"),
        ({"first": 4, "workers": 2, "simulate": 0.0}, "first: expected at most 2 workers, found 4"),
        ({"workers": 9999, "simulate": 0.0, "megabytes": 1000.0}, "of free memory for 9999"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_measured(wrong, sentence, capsys) -> None:
    with pytest.raises(SettingsError, match=sentence):
        run(Settings(**{"model": "lenet", **wrong}))
    assert capsys.readouterr().out == ""


def test_a_model_is_trained_with_the_batch_that_is_asked_for() -> None:
    assert Settings("lenet").workload() == workload("lenet")
    assert Settings("lenet", batch_size=5).workload().batch == 5
    assert not Settings("lenet").waits


def test_a_simulated_model_has_the_models_size_or_another() -> None:
    model, _, _ = Settings("lenet", simulate=0.0).workload().build()
    assert model.vector.size == Settings("lenet").numbers() == 61_706
    model, _, _ = Settings("lenet", simulate=0.0, megabytes=2).workload().build()
    assert model.vector.nbytes == 2_000_000
    assert Settings("lenet", simulate=1.0).waits
    assert not Settings("lenet", cluster="tcp://host:8786", simulate=1.0).waits


def test_only_a_simulated_model_has_another_size() -> None:
    with pytest.raises(SettingsError, match="megabytes: expected only with --simulate, found 3"):
        Settings("lenet", megabytes=3).workload()


def test_a_simulated_run_is_named_by_its_gradient():
    facts = [{"hosts": 1, "processor": "cpu"}]
    assert title(Settings("lenet"), facts) == "lenet: 1 x cpu"
    found = title(Settings("inception", simulate=1.5, megabytes=0.1), facts)
    assert found == "a gradient of 0.1 MB, 1.5 s of waiting: 1 x cpu"


def test_a_machine_is_told_without_its_name() -> None:
    found = machine()
    assert found["cores"] >= 1
    assert found["memory (GB)"] > 0
    assert found["processor"]
    assert {"daskdl", "numpy", "distributed"} <= found["packages"].keys()
    assert found["libraries"]
    assert platform.node() not in json.dumps(found).replace(found["processor"], "")


def test_equal_hosts_are_told_once(client) -> None:
    (found,) = machines(client)
    assert (found["hosts"], found["workers"]) == (1, 2)
    assert found["processor"] == machine()["processor"]
