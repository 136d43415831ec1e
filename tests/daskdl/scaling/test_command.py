from __future__ import annotations

import json

import pytest

from daskdl.errors import SettingsError
from daskdl.scaling.command import run
from daskdl.scaling.settings import Settings


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
