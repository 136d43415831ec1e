"""Tests of the names of forecasters."""

from __future__ import annotations

from pathlib import Path

import pytest

from daskdl.errors import DataError, SettingsError
from nowcast.forecasters import Persistence, Sprog, forecaster, method_names
from nowcast.forecasters.trained import Trained
from tests.nowcast.stores import small_model


def test_names_are_told_and_taken() -> None:
    assert method_names()[:4] == ["auto", "persistence", "extrapolation", "sprog"]
    assert forecaster("persistence") == Persistence()
    with pytest.raises(SettingsError, match=r"expected one of auto, persistence, .* found 'lk'"):
        forecaster("lk")


def test_auto_takes_a_model_only_if_it_passed_its_gate(tmp_path: Path) -> None:
    model = small_model()
    assert isinstance(forecaster("auto"), Sprog)
    for gate, kind, words in (
        ({}, Sprog, "not compared with sprog; sprog is taken"),
        ({"passed": False, "sentence": "no better"}, Sprog, "no better; sprog is taken"),
        ({"passed": True, "sentence": "better"}, Trained, "better; it is taken"),
    ):
        model.about["gate"] = gate
        model.save(tmp_path / "m")
        said: list[str] = []
        assert isinstance(forecaster("auto", tmp_path / "m", say=said.append), kind)
        assert len(said) == 1
        assert said[0].startswith(f"{tmp_path / 'm'}: the network is {words}")
        assert isinstance(forecaster("model", tmp_path / "m"), Trained)


def test_a_proof_on_simulated_rain_counts_for_no_other(tmp_path: Path) -> None:
    model = small_model()
    model.about["gate"] = {"passed": True, "sentence": "better", "simulated": True}
    model.save(tmp_path / "m")
    said: list[str] = []
    assert isinstance(forecaster("auto", tmp_path / "m", say=said.append), Sprog)
    assert said == [f"{tmp_path / 'm'}: the network is better; sprog is taken (or --method model)"]
    assert isinstance(forecaster("auto", tmp_path / "m", simulated=True), Trained)
    # As models were written before: whether anything that was trained on is simulated decides.
    model.about.update(gate={"passed": True, "sentence": "better"}, simulated=True)
    model.save(tmp_path / "m")
    assert isinstance(forecaster("auto", tmp_path / "m"), Sprog)


def test_a_model_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="add --model FOLDER, or choose --method auto"):
        forecaster("model")
    with pytest.raises(DataError, match="expected a model that nowcast train wrote"):
        forecaster("auto", tmp_path)
