"""``nowcast train``: settings, exit codes and what is said where."""

from __future__ import annotations

import json

import pytest

from daskdl.console import run
from nowcast.cli import app
from nowcast.model.model import NowcastModel
from tests.nowcast.fields import translation
from tests.nowcast.model.test_train import write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write_store(tmp_path_factory.mktemp("store") / "rain.zarr", translation(40, 0, 3, 48))


def test_a_model_and_json_that_describes_it(store, tmp_path, capsys):
    settings = ("n_in=2", "channels=[4]", "tile=32", "tile_stride=16", "fractions=[0.6, 0.2]")
    assigned = [part for setting in settings for part in ("--set", setting)]
    code = run(
        app,
        ["train", str(store), "--out", str(tmp_path / "m"), "--lead", "20min", "--epochs", "0.5",
         "--workers", "1", "--no-progress", "--json", *assigned],
    )  # fmt: skip
    said = capsys.readouterr()
    assert code == 0, said.err
    result = json.loads(said.out)
    assert result["settings"]["n_in"] == 2
    assert "training windows" in said.err
    assert NowcastModel.load(tmp_path / "m").n_out == 2


def test_what_is_wrong_is_said_before_workers_start(store, tmp_path, capsys):
    out = str(tmp_path / "m")
    assert run(app, ["train", str(tmp_path / "none.zarr"), "--out", out]) == 3
    assert run(app, ["train", str(store), "--out", out, "--set", "epocs=3"]) == 2
    assert run(app, ["train", str(store), "--out", out, "--lead", "soon"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 3
    assert not (tmp_path / "m").exists()
