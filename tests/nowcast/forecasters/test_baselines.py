"""Tests of the choice of baselines."""

from __future__ import annotations

import sys

import pytest

from nowcast.forecasters import Extrapolation, Persistence, baselines
from nowcast.forecasters.pysteps import pysteps_installed


def test_pysteps_stands_beside_them_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["nowcast.forecasters.baselines"]
    monkeypatch.setattr(module, "pysteps_installed", lambda: False)
    methods = baselines(7, 2.0, 10.0)
    assert {name: method.forecaster for name, method in methods.items()} == {
        "persistence": Persistence(),
        "extrapolation": Extrapolation(),
    }
    assert {(m.leads, m.spacing_km, m.step_minutes) for m in methods.values()} == {(7, 2.0, 10.0)}
    monkeypatch.undo()
    assert ("pysteps" in baselines(7, 2.0, 10.0)) == pysteps_installed()
