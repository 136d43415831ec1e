"""Settings of a stream, its status, and orders of another model."""

from __future__ import annotations

import hashlib
import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from ci.kafka import produce
from daskdl.errors import ModelFileError, SettingsError
from daskdl.stream import ModelFile
from daskdl.stream.driver.status import Status
from daskdl.stream.service import command
from daskdl.stream.service.configuration import configured
from daskdl.stream.service.live import as_line, as_table, shown
from daskdl.stream.service.model_orders import ControlTopic, WatchedFile, following
from daskdl.stream.worker.latency import Histogram
from daskdl.stream.worker.orders import Report
from tests.daskdl.stream.models import text_model

OPTIONS = {"brokers": "b:9092", "topics": "calls", "out": "routes", "model": "m.safetensors"}


def test_options_override_the_file(tmp_path):
    file = tmp_path / "stream.yaml"
    file.write_text(
        "control:\nseconds: 5\nworkers: 2\n"
        "in: calls\nout: elsewhere\nexactly-once: true\nkafka: {sasl.password: hidden, a: 1}\n"
        "routes: {money: specialist}\nunsure: {below: 0.4, topic: human}\n"
    )
    options = {**OPTIONS, "topics": None, "exactly_once": None, "kafka": {"a": "2"}}
    settings = configured(file, options)
    assert (settings.topics, settings.out, settings.exactly_once) == ("calls", "routes", True)
    assert settings.kafka == {"sasl.password": "hidden", "a": "2"}
    assert "hidden" not in repr(settings)
    routes = settings.routing()
    assert routes.topics() == ["routes", "routes.dead-letter", "specialist", "human"]
    assert routes.of("money", 0.39) == "human"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("exacty-once: true", "expected one of .*, found exacty_once; did you mean exactly_once"),
        ("- a", "expected names and values, found list"),
        ("a: [b", "expected a YAML file, found ParserError"),
        ("batch: many", "batch: expected a whole number of at least 1, found 'many'"),
        ("batch: 0", "batch: expected a whole number of at least 1, found 0"),
        ("exactly-once: sure", "exactly_once: expected true or false, found 'sure'"),
        ("silence: soon", "silence: expected a number, found 'soon'"),
        ("group: 5", "group: expected a text, found 5; put it into quotes"),
        ("kafka: hunter2", "kafka: expected names and values, found 'str'"),
        ("routes: money", "routes: expected names and values, found 'str'"),
        ("routes: {money: 3}", "routes, money: expected a text, found 3"),
    ],
)
def test_invalid_files_are_refused(tmp_path, text, sentence):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(SettingsError, match=sentence):
        configured(tmp_path / "x.yaml", OPTIONS)


def test_missing_options_are_named():
    with pytest.raises(SettingsError, match="stream: expected --out, found none"):
        configured(None, {**OPTIONS, "out": None})
    with pytest.raises(SettingsError, match="unsure: expected a probability, below, and a topic"):
        configured(None, {**OPTIONS, "unsure": {"below": 0.5}}).routing()


def test_settings_of_kafka_and_topics_are_checked_before_a_cluster_is_started(
    mock, name, model: ModelFile, tmp_path, monkeypatch
):
    def connect(*_, **__):
        raise AssertionError("a cluster was started")

    monkeypatch.setattr(command, "connect", connect)
    produce(mock.servers, name, 4, [b"1"])
    (tmp_path / "m.safetensors").write_bytes(model.data)
    options = {
        "brokers": mock.servers, "topics": name, "out": name, "group": name,
        "model": str(tmp_path / "m.safetensors"), "dead_letter": name,
    }  # fmt: skip
    with pytest.raises(SettingsError, match=r"librdkafka, found that it says.*sasl\.passwort"):
        command.run(configured(None, {**options, "kafka": {"sasl.passwort": "hidden"}}))
    with pytest.raises(SettingsError, match=r"topic no/name: expected a topic"):
        command.run(configured(None, {**options, "topics": "no/name"}))
    with pytest.raises(AssertionError, match="a cluster was started"):
        command.run(configured(None, options))


def test_before_the_first_answer_there_is_no_latency() -> None:
    line = as_line(Status(ModelFile("m", b"")))
    assert line.startswith("0 records, 0/s, lag 0, p50 -, p99 -, 0 dead letters, 0 workers")


def test_latencies_of_a_worker() -> None:
    latencies, status = Histogram(), Status(ModelFile("m", b""))
    latencies.add(np.full(3, 20.0))
    report = Report(records=3, latencies=latencies.sparse())
    status.workers, status.reports = {"tcp://a": report}, [report]
    assert " ms, p99 " in as_line(status)
    table = as_table(status)
    assert "p50 -" not in str(table.caption)
    assert list(table.columns[0].cells) == ["tcp://a"]


def test_another_model_is_shown_at_once_and_stays_in_view(capsys) -> None:
    stream = SimpleNamespace(status=Status(ModelFile("a", b"a")))
    with shown(True) as show:
        show(stream)
        assert capsys.readouterr().err == ""  # not due
        for name in "bc":
            stream.status.model = ModelFile(name, name.encode())
            stream.status.models.append(stream.status.model.sha256)
            show(stream)
            show(stream)
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(f"model b {hashlib.sha256(b'b').hexdigest()[:12]} (swapped once)")
    assert second.endswith("(swapped 2 times)")
    assert "(swapped 2 times)" in str(as_table(stream.status).title)


def test_a_file_that_was_replaced(tmp_path):
    first = text_model(tmp_path, "m")
    watched = WatchedFile(tmp_path / "m.safetensors")
    assert watched.newest() is None
    second = text_model(tmp_path, "m", seed=1)
    newest = watched.newest()
    assert newest is not None
    assert newest.sha256 == second.sha256 != first.sha256
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
            if (newest := control.newest()) is not None:
                return newest
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
    again = ControlTopic(mock, name, "group")  # a driver that starts again
    assert newest(again).sha256 == ModelFile.read(tmp_path / "b.safetensors").sha256
    again.close()


def test_an_order_that_cannot_be_followed_is_passed_over(tmp_path):
    """The thread goes on to the next order."""
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
