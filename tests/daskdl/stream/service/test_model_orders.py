"""Other models by a watched file and by a control topic."""

from __future__ import annotations

import json
import threading

import pytest

from daskdl.errors import ModelFileError, SettingsError
from daskdl.stream.service.model_orders import ControlTopic, WatchedFile, following
from daskdl.stream.worker.model_file import ModelFile
from tests.daskdl.stream.models import text_model


def test_a_file_that_was_replaced(tmp_path):
    first = text_model(tmp_path, "m")
    watched = WatchedFile(tmp_path / "m.safetensors")
    assert watched.newest() is None
    second = text_model(tmp_path, "m", seed=1)
    found = watched.newest()
    assert found is not None
    assert found.sha256 == second.sha256 != first.sha256
    assert watched.newest() is None
    (tmp_path / "m.safetensors").unlink()
    assert watched.newest() is None


def test_the_last_order_of_a_topic_counts(mock, name, tmp_path):
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"bootstrap.servers": mock.servers})

    def order(value: bytes) -> None:
        producer.produce(name, value, partition=0)
        producer.flush()

    def newest(control: ControlTopic):
        for _ in range(50):
            if (found := control.newest()) is not None:
                return found
        raise AssertionError

    for seed, model in enumerate(["a", "b"]):
        text_model(tmp_path, model, seed)
        order(json.dumps({"model": str(tmp_path / f"{model}.safetensors"), "name": "n"}).encode())
    control = ControlTopic(mock, name, "group")
    assert newest(control).name == "n"
    order(b"nonsense")
    with pytest.raises(SettingsError, match=f"control topic {name}: expected a message such as"):
        newest(control)
    order(b'{"model": "/absent.safetensors"}')
    with pytest.raises(ModelFileError, match="expected a model file"):
        newest(control)
    control.close()
    again = ControlTopic(mock, name, "group")  # of a driver that begins anew
    assert newest(again).sha256 == ModelFile.read(tmp_path / "b.safetensors").sha256
    again.close()


def test_an_order_that_cannot_be_followed_is_passed_over(tmp_path):
    """The thread goes on to the next."""
    good, swapped, closed = text_model(tmp_path), threading.Event(), []

    class Orders:
        calls = 0

        def newest(self):
            self.calls += 1
            if self.calls == 1:
                raise ModelFileError("broken: not a whole safetensors file")
            return good

        def close(self):
            closed.append(True)

    with following([Orders()], lambda file: swapped.set()):
        assert swapped.wait(20)
    assert closed == [True]
