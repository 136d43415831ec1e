"""Tests of the choice of baselines."""

from __future__ import annotations

import sys

import pytest

from nowcast.forecasters import Extrapolation, Persistence, baselines
from nowcast.forecasters.pysteps import pysteps_installed


def test_pysteps_stands_beside_them_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["nowcast.forecasters.baselines"]
    monkeypatch.setattr(module, "pysteps_installed", lambda: False)
    assert baselines(7) == {"persistence": Persistence(7), "extrapolation": Extrapolation(7)}
    monkeypatch.undo()
    assert ("pysteps" in baselines(7)) == pysteps_installed()
    monkeypatch.setattr(module, "pysteps_installed", lambda: True)
    monkeypatch.setattr(module, "PystepsExtrapolation", lambda n_out: f"pysteps {n_out}")
    assert list(baselines(7)) == ["persistence", "extrapolation", "pysteps"]
