from __future__ import annotations

import pytest

from daskdl.errors import SettingsError
from daskdl.scaling.command import title
from daskdl.scaling.settings import Settings
from daskdl.scaling.workloads import workload


def test_a_model_is_trained_with_the_batch_that_is_asked_for() -> None:
    assert Settings("lenet").workload() == workload("lenet")
    assert Settings("lenet", batch_size=5).workload().batch == 5
    assert not Settings("lenet").waits


def test_a_simulated_model_has_the_models_size_or_another() -> None:
    model, _, _ = Settings("lenet", simulate=0.0).workload().build()
    assert model.vector.size == Settings("lenet").numbers() == 61_706
    model, _, _ = Settings("lenet", simulate=0.0, megabytes=2).workload().build()
    assert model.vector.nbytes == 2_000_000
    assert Settings("lenet", simulate=1.0).waits
    assert not Settings("lenet", cluster="tcp://host:8786", simulate=1.0).waits


def test_only_a_simulated_model_has_another_size() -> None:
    with pytest.raises(SettingsError, match="megabytes: expected only with --simulate, found 3"):
        Settings("lenet", megabytes=3).workload()


def test_a_simulated_run_is_named_by_its_gradient():
    facts = [{"hosts": 1, "processor": "cpu"}]
    assert title(Settings("lenet"), facts) == "lenet: 1 x cpu"
    found = title(Settings("inception", simulate=1.5, megabytes=0.1), facts)
    assert found == "a gradient of 0.1 MB, 1.5 s of waiting: 1 x cpu"
