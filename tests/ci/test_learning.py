"""The learning curve: finished rows are reused, and radars that judge are not trained on."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ci.bench import learning
from ci.bench.learning import LEAST
from ci.bench.skill.events import SOURCES

KEY = {"iterations": 5, "network": "small", "networks": 1, "seed": 0, "starts": 3}


def row(lead: float) -> dict[str, float]:
    scores = {
        f"{name}_{part}": 0.1
        for name in ("csi", "brier", "crps")
        for part in ("model", "sprog", "difference", "difference_low", "difference_high")
    }
    return {"lead_minutes": lead, "events": 2, **scores}


@pytest.fixture
def trainings(monkeypatch) -> list[str]:
    """Names of the folds that were trained."""
    done: list[str] = []

    def learn(fold, folder, iterations, settings):
        done.append(fold.name)
        return "network", "reference"

    monkeypatch.setattr(learning, "learn", learn)
    monkeypatch.setattr(learning, "judged", lambda stores, methods, every: [row(30.0), row(60.0)])
    return done


def test_rows_of_the_file_are_not_made_again(trainings, tmp_path):
    file = tmp_path / "rows.json"
    first = learning.Fold("one", ["a", "b"], ["c"], ["d"])
    made = learning.run(first, KEY, file, tmp_path)
    assert [r["lead_minutes"] for r in made] == [30.0, 60.0]
    assert learning.run(first, KEY, file, tmp_path) == made
    assert trainings == ["one"]
    learning.run(first, KEY | {"iterations": 6}, file, tmp_path)
    learning.run(learning.Fold("two", ["a"], ["c"], ["d"]), KEY, file, tmp_path)
    assert trainings == ["one", "one", "two"]
    assert len(json.loads(file.read_text())) == 6


def test_a_radar_that_judges_is_in_no_other_part(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "ci.bench.skill.events.load",
        lambda source, *_: SimpleNamespace(
            name=source.name, radar=source.radar, step=5, starts=lambda *_: range(LEAST)
        ),
    )
    monkeypatch.setattr("ci.bench.skill.events.available", lambda *_: list(SOURCES))
    more = tmp_path / "simulated.zarr"
    folds = learning.real(tmp_path, tmp_path, [more])
    assert {fold.name for fold in folds} == {"bom66", "fmi", "knmi", "mch", "opera"}
    for fold in folds:
        parts = [set(fold.train), set(fold.validate), set(fold.judge)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == 7
        assert more in fold.train
        assert fold.table is not None
        assert all(fold.name in path.name for path in fold.judge)
