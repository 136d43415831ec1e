"""Whether data is simulated."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from nowcast.rain.simulated import is_simulated


@pytest.mark.parametrize(
    ("attrs", "simulated"),
    [
        ({}, False),
        ({"simulated": 1}, True),
        ({"simulated": np.bool_(True)}, True),
        ({"simulated": "True"}, True),
        ({"simulated": 0}, False),
        ({"simulated": "no", "title": "what is not simulated"}, False),
        ({"simulated": "", "title": "Rain rate of Simulated radar"}, True),
        ({"source": "weather radar, ODIM_H5, station Simulated radar"}, True),
        ({"station": "Simulated radar"}, True),
        ({"source": "weather radar, ODIM_H5, station behel", "history": "simulated"}, False),
    ],
)
def test_an_attribute_decides_then_what_it_is_called(attrs, simulated):
    assert is_simulated(xr.Dataset(attrs=attrs)) is simulated
    assert is_simulated(xr.DataArray(0.0, attrs=attrs)) is simulated
