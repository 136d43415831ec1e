"""The variable of a CF file that is rain: its name, its cell methods and its units."""

from __future__ import annotations

import pytest

from daskdl.errors import DataError
from nowcast.radar.maps import composite
from nowcast.radar.reader import read_header
from nowcast.radar.units import rain_factor
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.maps.test_cfnetcdf import maps, write


@pytest.mark.parametrize(
    ("name", "methods", "sentence"),
    [
        ("rainfall_rate", "time: maximum", "found time: maximum"),
        ("rainfall_rate", "time: sum", "found time: sum"),
        ("rainfall_rate", "time: mean (interval: 5 min) y: x: maximum", "y: maximum, x: maximum"),
        ("rainfall_rate", "realization: median", "found realization: median"),
        ("rainfall_amount", "time: mean", "found time: mean"),
        ("rainfall_rate", "area: mean time: point", None),
        ("rainfall_amount", "area: mean time: sum (interval: 1 min comment: gauges)", None),
        ("equivalent_reflectivity_factor", "time: point height: maximum", None),
    ],
)
def test_what_is_no_mean_is_no_rain(tmp_path, name, methods, sentence):
    dataset = maps(name)
    dataset["rain"].attrs["cell_methods"] = methods
    path = write(dataset, tmp_path / "a.nc")
    if sentence is None:
        assert len(read_header(path).times) == 2
    else:
        with pytest.raises(DataError, match=sentence):
            read_header(path)


def test_two_variables_of_one_name_are_told_apart_or_refused(tmp_path):
    dataset = maps()
    dataset["best"] = (2 * dataset["rain"]).assign_attrs(dataset["rain"].attrs)
    with pytest.raises(DataError, match=r"one variable of rainfall_rate, .* found rain, best; "):
        read_header(write(dataset, tmp_path / "a.nc"))
    dataset["rain"].attrs["cell_methods"] = "time: maximum"
    header = read_header(write(dataset, tmp_path / "b.nc"))
    assert composite.read_rain(header, 1, ZRRelation())[0].tolist() == [40, 42, 44, 46]


@pytest.mark.parametrize(
    ("units", "kind", "factor"),
    [
        ("mm hour-1", "rate", 1), ("mm h**-1", "rate", 1), ("mm/day", "rate", 1 / 24),
        ("in hr^-1", "rate", 25.4), ("kg/m2/s", "rate", 3600), ("kg m-2 s-1", "rate", 3600),
        ("m.s-1", "rate", 3.6e6), ("mm h-1", "amount", None), ("mm", "rate", None),
        ("kg m-3", "amount", None), ("dBZ", "rate", None),
        ("mm h-2", "rate", None), ("", "rate", None),
    ],
)  # fmt: skip
def test_units_are_read_as_udunits_spells_them(units, kind, factor):
    assert rain_factor(units, kind) == (None if factor is None else pytest.approx(factor))
