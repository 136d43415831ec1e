"""Brokers: librdkafka's mock cluster in this process, and noida-db as a process of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from ci.kafka import Broker, broker
from daskdl.stream import Brokers, ModelFile
from tests.daskdl.stream.models import text_model


@pytest.fixture(scope="session")
def mock() -> Iterator[Brokers]:
    """A mock cluster, which makes topics of four partitions when they are asked for."""
    kafka = pytest.importorskip("confluent_kafka")
    settings = {"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0}
    owner: Any = kafka.Producer(settings)
    servers = ",".join(f"{b.host}:{b.port}" for b in owner.list_topics().brokers.values())
    yield Brokers(servers)
    del owner


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with transactions as a process of its own."""
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("noida_db")
    with broker(tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka


@pytest.fixture
def name() -> str:
    """A unique name for topics and groups."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> ModelFile:
    return text_model(tmp_path_factory.mktemp("models"))
