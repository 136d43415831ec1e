"""Workers and drivers that are lost: partitions go to others in time, and nothing comes twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ci.kafka import produce, read_all
from daskdl.errors import ClusterError
from daskdl.stream import Limits, Stream
from tests.daskdl.stream.models import begun, once_and_in_order, stream_of, utterances

pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.kills

#: Seconds until partitions of a killed worker are read again, and more on a slow machine.
HAND_OVER, LEEWAY = 3.0, 10.0

ONCE = {"exactly_once": True, "limits": Limits(batch=8, lease=4.0)}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_worker_hands_its_partitions_over(client, real, name, model, number):
    brokers = begun(real, name, 400)
    pids = client.run(os.getpid)
    lost: list[int] = []

    def watch(stream: Stream) -> None:
        if not lost and stream.status.records > 40:
            produce(real.servers, name, 4, utterances(400))
            lost.append(pids[sorted(pids)[0]])
            os.kill(lost[0], number)
        done = lost and stream.status.hand_overs
        if done and all(h.seconds == h.seconds for h in stream.status.hand_overs):
            if number == signal.SIGSTOP:
                os.kill(lost[0], signal.SIGCONT)  # a zombie that may try to commit
            if all(r.ended for r in stream.status.workers.values()):
                stream.stop()

    status = stream_of(brokers, name, model, **ONCE, silence=5.0).run(
        client, watch=watch, seconds=100
    )
    assert lost
    (first, *_) = status.hand_overs
    waited = 5.0 if number == signal.SIGSTOP else 0.0
    assert first.seconds < waited + HAND_OVER + LEEWAY
    once_and_in_order(real.servers, name, 800)


def test_a_second_driver_takes_the_group_over(client, real, name, model):
    brokers = begun(real, name, 40)
    errors: list[BaseException] = []

    def first() -> None:
        try:
            stream_of(brokers, name, model, **ONCE).run(client, seconds=60)
        except ClusterError as error:
            errors.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    limit = time.monotonic() + 60
    while sum(map(len, read_all(real.servers, f"{name}-out").values())) < 40:
        assert time.monotonic() < limit
    second = stream_of(brokers, name, model, **ONCE)
    produce(real.servers, name, 4, utterances(40))
    second.run(client, seconds=60, watch=lambda s: errors and s.stop())
    thread.join(60)
    assert "has taken it over; stop one of the two" in str(errors[0])
    stream_of(brokers, name, model, **ONCE).run(client, until_end=True, seconds=60)
    once_and_in_order(real.servers, name, 80)


@pytest.mark.long
def test_sigterm_ends_the_command_with_all_committed(real, name, model, tmp_path):
    import json

    begun(real, name, 400)
    (tmp_path / "m.safetensors").write_bytes(model.data)
    command = [
        sys.executable, "-m", "daskdl.cli", "stream", "--brokers", real.servers,
        "--in", name, "--out", f"{name}-out", "--dead-letter", f"{name}-dead", "--workers", "2",
        "--model", str(tmp_path / "m.safetensors"), "--exactly-once", "--group", name,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        limit = time.monotonic() + 120
        while not any(read_all(real.servers, f"{name}-out").values()):
            assert time.monotonic() < limit
        process.terminate()
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    status = json.loads(output)
    answers = sum(map(len, read_all(real.servers, f"{name}-out").values()))
    assert status["answers"] == answers > 0
