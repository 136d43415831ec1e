"""The variable of a CF file that is rain: its name, its cell methods and its units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskdl.errors import DataError
from nowcast.radar.reader import read_header, read_rain
from nowcast.radar.units import rain_factor
from nowcast.rain.rainrate import ZRRelation
from tests.nowcast.radar.maps.test_cfnetcdf import UNITS, maps, write


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
def test_only_means_and_sums_are_rain(tmp_path, name, methods, sentence):
    dataset = maps(name)
    dataset["rain"].attrs["cell_methods"] = methods
    path = write(dataset, tmp_path / "a.nc")
    if sentence is None:
        assert len(read_header(path).times) == 2
    else:
        with pytest.raises(DataError, match=sentence):
            read_header(path)


def test_two_variables_of_one_name_are_distinguished_or_refused(tmp_path):
    dataset = maps()
    dataset["best"] = (2 * dataset["rain"]).assign_attrs(dataset["rain"].attrs)
    with pytest.raises(DataError, match=r"one variable of rainfall_rate, .* found rain, best; "):
        read_header(write(dataset, tmp_path / "a.nc"))
    dataset["rain"].attrs["cell_methods"] = "time: maximum"
    header = read_header(write(dataset, tmp_path / "b.nc"))
    assert read_rain(header, 1, ZRRelation())[0].tolist() == [40, 42, 44, 46]


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    kind=st.sampled_from([("rainfall_rate", "mm h-1", 1.0), *UNITS]),
    packed=st.sampled_from([None, "int16", "int32"]),
    form=st.sampled_from(["NETCDF4", "NETCDF3_CLASSIC"]),
    upward=st.booleans(), leftward=st.booleans(), by_column=st.booleans(),
    metres=st.booleans(), ratio=st.sampled_from([1.0, 1.5, 3.0]),
)  # fmt: skip
def test_the_same_rain_is_read_from_every_form(
    tmp_path, kind, packed, form, upward, leftward, by_column, metres, ratio
):
    name, units, factor = kind
    dataset = maps(name, units, bounds="edges")
    dataset["y"] = dataset.y.copy(data=dataset.y.values * ratio)
    dataset["rain"][:] /= factor
    if packed:
        scale = float(dataset.rain.max()) / 23 / 100
        dataset["rain"].encoding = {"dtype": packed, "scale_factor": scale, "_FillValue": -9}
    if metres:
        for axis in ("x", "y"):
            attributes = dataset[axis].attrs | {"units": "m"}
            dataset[axis] = (axis, dataset[axis].values * 1000, attributes)
    dataset = dataset.isel(
        y=slice(None, None, -1 if upward else 1), x=slice(None, None, -1 if leftward else 1)
    )
    if by_column:
        dataset = dataset.transpose("time", "x", "y", "two")
    header = read_header(write(dataset, tmp_path / "a.nc", form))
    assert (header.grid.dx, header.grid.dy) == (1000.0, 1000.0 * ratio)
    rain = np.stack([read_rain(header, i, ZRRelation()) for i in (0, 1)])
    np.testing.assert_allclose(rain, maps()["rain"].values[:, ::-1], atol=1e-3)
