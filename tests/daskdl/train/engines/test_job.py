from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.nn import Embedding, Linear, MSELoss, Sequential
from daskdl.optim import SGD
from daskdl.train.engines.job import Job, Tools, pack
from tests.daskdl.train.runs import network


def new_job(**options: object) -> Job:
    return pack(Tools(network(), MSELoss(), SGD(0.1), **options), seed=1, threads=1)


def test_a_thread_unpacks_once_and_has_a_model_of_its_own() -> None:
    job = pickle.loads(pickle.dumps(new_job()))
    assert job.tools() is job.tools()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(job.tools).result().model is not job.tools().model


def test_a_thread_holds_the_last_two_jobs_only() -> None:
    def turns() -> None:
        one, two, three = new_job(), new_job(), new_job()
        of_one, of_two = one.tools(), two.tools()
        assert one.tools() is of_one  # and is the latest now
        three.tools()
        assert one.tools() is of_one
        assert two.tools() is not of_two

    with ThreadPoolExecutor(1) as other:
        other.submit(turns).result()


def test_a_class_of_the_users_script_travels_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "class Loss:\n    def __call__(self, prediction, target):\n        return 42\n"
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "Loss", None, raising=False)
    exec(source, vars(main))
    job = pack(Tools(network(), main.Loss(), SGD(0.1)), seed=1, threads=1)
    monkeypatch.delattr(main, "Loss")
    assert job.tools().loss(0, 0) == 42


@pytest.mark.parametrize("name", [field.name for field in fields(Tools)])
def test_what_does_not_pickle_is_named(name: str) -> None:
    parts = {"model": network(), "loss": MSELoss(), "optimizer": SGD(0.1)}
    with pytest.raises(SettingsError) as raised:
        pack(Tools(**{**parts, name: threading.Lock()}), seed=1, threads=1)
    sentence = str(raised.value)
    assert sentence.startswith(f"Trainer: expected {name.replace('_', ' ')} that can be pickled")
    assert "_thread.lock" in sentence
    assert "\n" not in sentence


def test_its_size_is_its_payloads() -> None:
    job = new_job()
    assert sys.getsizeof(job) >= len(job.payload)


def test_numbers_do_not_travel_with_a_job() -> None:
    model = Sequential(Embedding(10_000, 8, seed=0, sparse=True).freeze(), Linear(8, 1, seed=0))
    job = pack(Tools(model, MSELoss(), SGD(0.1)), seed=0, threads=1)
    assert len(job.payload) < 10_000  # of 320,000
    found = job.tools().model
    assert [(n, t.shape, t.requires_grad) for n, t in found.tables.items()] == [
        ("layers.0.weight", (10_000, 8), False)
    ]
    assert not found.flat.any()
    found.restore(model.snapshot())
    np.testing.assert_array_equal(found.snapshot(), model.snapshot())
