"""``nowcast export``: a store in mlcast's convention, and what is said."""

from __future__ import annotations

from daskdl.console import run
from nowcast.cli import app
from nowcast.rain.store import write_zarr
from tests.nowcast.stores import moving_rain

OPTIONS = (
    "--identifier", "NL-knmi-rain_rate", "--created-by", "A Person <person@example.org>",
    "--created-with", "https://github.com/mlcast-community/mlcast-dataset-knmi-test@v0.1.0",
    "--license", "CC-BY-4.0",
)  # fmt: skip


def test_a_store_is_written(tmp_path, capsys):
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    arguments = ["export", str(tmp_path / "rain.zarr"), "--out", str(tmp_path / "out.zarr")]
    assert run(app, [*arguments, *OPTIONS]) == 0
    assert "0 missing times listed" in capsys.readouterr().err
    assert (tmp_path / "out.zarr" / "zarr.json").exists()


def test_a_wrong_identifier_is_a_usage_error(tmp_path, capsys):
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    arguments = ["export", str(tmp_path / "rain.zarr"), "--out", str(tmp_path / "out.zarr")]
    assert run(app, [*arguments, "--identifier", "x", *OPTIONS[2:]]) == 2
    assert "identifier" in capsys.readouterr().err
    assert not (tmp_path / "out.zarr").exists()
