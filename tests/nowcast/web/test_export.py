"""The page as files: their content, and the files of older exports that stay."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

from daskdl.errors import SettingsError
from nowcast.rain.store import write_netcdf
from nowcast.web.export import MISSING, SIDE, export
from tests.nowcast.stores import N_OUT, SIZE
from tests.nowcast.web.conftest import a_forecast


def test_files_have_the_numbers_of_the_forecast(areas, shown, tmp_path):
    shown.refresh()
    case = shown.shown()
    export(case, tmp_path / "site")
    frames = json.loads((tmp_path / "site" / "frames").read_text())
    base = tmp_path / "site" / frames["base"]
    assert len(list(base.glob("frame/*/*.png"))) == 12 + 6 * N_OUT
    assert SIDE > SIZE
    packed = zlib.decompress((base / "square" / "0-0").read_bytes())
    fields = np.frombuffer(packed, "<u2").reshape(-1, SIZE, SIZE)
    assert len(fields) == len(case.times) + (1 + 3 + 2) * N_OUT
    observed = case.observed.astype(float)
    numbers = np.where(fields == MISSING, np.nan, fields / 100)[: len(observed)]
    np.testing.assert_allclose(numbers, observed, atol=0.006)
    assert fields[-1, 5, 5] == pytest.approx(3000, abs=3)  # 0.3, the probability of 1 mm/h


def test_a_foreign_page_is_not_overwritten(shown, tmp_path):
    shown.refresh()
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(SettingsError, match=r"index\.html of something else"):
        export(shown.shown(), tmp_path)
    assert (tmp_path / "index.html").read_text() == "mine"


def test_the_previous_export_stays_until_the_next(folder, shown, tmp_path):
    site, names = tmp_path / "site", []
    for index in (11, 14, 17):
        write_netcdf(a_forecast(index), folder / "forecasts" / f"20200601T{index}.nc")
        shown.refresh()
        export(shown.shown(), site)
        names.append(shown.shown().name)
    assert {path.name for path in (site / "case").iterdir()} == set(names[1:])

    def cut_off(done, total):
        raise KeyboardInterrupt

    write_netcdf(a_forecast(18), folder / "forecasts" / "20200601T18.nc")
    shown.refresh()
    with pytest.raises(KeyboardInterrupt):
        export(shown.shown(), site, cut_off)
    assert {path.name for path in (site / "case").iterdir()} == set(names[1:])
    assert names[2] in (site / "frames").read_text()
