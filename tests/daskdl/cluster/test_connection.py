"""Clusters: worker processes that start and end, schedulers that answer or not."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import threading
import time

import dask
import numpy as np
import pytest
from distributed.security import Security

from daskdl import nn
from daskdl.cluster import connect
from daskdl.cluster.connection import quiet
from daskdl.errors import ClusterError, SettingsError
from tests.daskdl.clusters import SPAWN, small

STEALING = "distributed.scheduler.work-stealing"


def variables():
    """Return the environment without the variables that pytest and Dask set."""
    ignored = {"PYTEST_CURRENT_TEST", "__DASK_PARENT_PID"}
    return {name: value for name, value in os.environ.items() if name not in ignored}


@pytest.fixture(autouse=True)
def _this_process_is_left_as_it_was():
    def state():
        level = logging.getLogger("distributed.core").level
        return {**variables(), "stealing": dask.config.get(STEALING), "level": level}

    before = state()
    yield
    assert dict(state().items() - before.items()) == {}
    assert before.keys() == state().keys()
    assert dask.config.get("scheduler", None) is None


@pytest.fixture(scope="module")
def running():
    """A scheduler with an address and one worker, as if another program had started it."""
    with small(protocol="tcp://", host="127.0.0.1") as cluster:
        yield cluster


def has_ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def refused(spec, **options):
    """Return the error message of a failed connection, which has to be one line."""
    with pytest.raises(ClusterError) as caught, connect(spec, **options):
        pass
    assert dask.config.get("scheduler", None) is None
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{spec}: expected ")
    return str(caught.value)


# --- worker processes of this machine


@pytest.mark.slow
def test_worker_processes_end_with_the_block(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    before = variables()
    processes = {}

    def block():
        with (
            dask.config.set(SPAWN),
            connect("local", workers=2, threads_per_worker=3) as client,
        ):
            assert variables() == before
            assert list(client.nthreads().values()) == [3, 3]
            assert dask.config.get(STEALING) is False
            assert logging.getLogger("distributed.core").level == logging.CRITICAL
            assert dask.delayed(os.getpid)().compute() != os.getpid()
            processes.update(client.run(os.getpid))
            # Ctrl-C in a terminal reaches all its processes; the workers leave it to this one.
            assert set(client.run(signal.getsignal, signal.SIGINT).values()) == {signal.SIG_IGN}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert len(set(processes.values()) - {os.getpid()}) == 2
    limit = time.monotonic() + 30
    while not all(map(has_ended, processes.values())):
        assert time.monotonic() < limit, "workers are left behind"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("coroutine", "heard"), [("mine.py:3", True), ("distributed/client.py:9", False)]
)
def test_failures_of_other_tasks_than_dasks_are_still_logged(coroutine, heard, caplog):
    with quiet():
        logging.getLogger("asyncio").error("Task exception was never retrieved: %s", coroutine)
    assert ("never retrieved" in caplog.text) is heard
    caplog.clear()
    logging.getLogger("asyncio").error("Task exception was never retrieved: %s", coroutine)
    assert "never retrieved" in caplog.text


@pytest.mark.slow
def test_two_local_clusters_at_once_and_a_second_client_of_one():
    with connect(workers=1) as outer:
        address = outer.scheduler.address
        with connect("local", workers=1) as inner:
            assert inner.scheduler.address != address
            assert inner.submit(os.getpid).result() != outer.submit(os.getpid).result()
        with connect(address) as second:
            assert second.nthreads() == outer.nthreads()
        # The end of another cluster or client does not end this one.
        assert outer.submit(pow, 2, 5).result() == 32
        assert dask.config.get(STEALING) is False


@pytest.mark.slow
def test_each_local_process_has_cores_for_its_threads(monkeypatch):
    monkeypatch.setattr("daskdl.cluster.connection.available_cores", lambda: 2)
    with connect("local", threads_per_worker=2) as client:
        assert list(client.nthreads().values()) == [2]


@pytest.mark.parametrize("option", ["workers", "threads_per_worker"])
def test_numbers_below_one_are_refused(option):
    with (
        pytest.raises(
            SettingsError, match=f"^{option}: expected at least 1, found 0; leave it out for"
        ),
        connect("local", **{option: 0}),
    ):
        pass


def test_a_spec_of_no_cluster_is_refused():
    with (
        pytest.raises(
            SettingsError, match=r"such as tcp://host:8786.*found 'node1:8786'; give one"
        ),
        connect("node1:8786"),
    ):
        pass


# --- schedulers that run already


def test_an_address_and_a_scheduler_file_lead_to_the_scheduler(running, tmp_path):
    path = tmp_path / "scheduler.json"
    with connect(running.scheduler_address) as client:
        assert client.submit(pow, 2, 5).result() == 32
        # As client.write_scheduler_file, which fails if tuples name a worker's metrics.
        path.write_text(json.dumps(client.scheduler_info(), skipkeys=True))
    with connect(path) as client:
        assert client.scheduler.address == running.scheduler_address
        assert client.submit(pow, 2, 6).result() == 64


@pytest.mark.slow
def test_a_scheduler_that_speaks_tls_is_found_by_dasks_configuration(tmp_path):
    pytest.importorskip("cryptography")
    security = Security.temporary()
    names = {
        "ca-file": security.tls_ca_file,
        "client.key": security.tls_client_key,
        "client.cert": security.tls_client_cert,
    }
    for name, text in names.items():
        (tmp_path / name).write_text(text)
    config = {f"distributed.comm.tls.{name}": str(tmp_path / name) for name in names}
    with (
        small(protocol="tls://", security=security, host="127.0.0.1") as cluster,
        dask.config.set(config),
        connect(cluster.scheduler_address) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        assert client.submit(pow, 2, 5).result() == 32


def test_a_worker_is_no_scheduler(running):
    assert "found Worker" in refused(running.workers[0].address)


def test_an_address_where_nobody_listens_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    assert "to answer within 0.2 s, found none" in refused(address, timeout=0.2)


def test_an_open_but_silent_port_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        assert "to answer within 0.2 s, found none" in refused(address, timeout=0.2)


def test_a_port_of_another_program_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet():
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as visitor:
                        visitor.sendall(b"SSH-2.0-OpenSSH_9.6\r\n" + bytes(1000))

        threading.Thread(target=greet, daemon=True).start()
        assert "expected a Dask scheduler" in refused(
            f"tcp://127.0.0.1:{server.getsockname()[1]}", timeout=1
        )
        server.shutdown(socket.SHUT_RDWR)  # ends accept, and so the thread


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("carrier-pigeon://host:1", "unknown address scheme 'carrier-pigeon'"),
        ("tcp://host", "missing port"),
        ("tcp://host:dask", "'tcp://host:dask'"),
        ("tls://127.0.0.1:1", "TLS"),  # without certificates in Dask's configuration
    ],
)
def test_wrong_addresses_are_refused(spec, message):
    assert message in refused(spec, timeout=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "found none; start the scheduler with --scheduler-file"),
        ("{", "found no address in it (JSONDecodeError"),
        ("[]", "found no address in it (TypeError"),
        (json.dumps({"type": "Scheduler"}), "found no address in it (KeyError: 'address')"),
        (json.dumps({"address": "tcp://host"}), "missing port"),
        (json.dumps({"address": 8786}), "found '8786'"),
    ],
)
def test_wrong_scheduler_files_are_refused(content, message, tmp_path):
    path = tmp_path / "scheduler.json"
    if content is not None:
        path.write_text(content)
    assert message in refused(str(path))


def test_a_scheduler_file_that_is_being_written_is_read_when_it_is_whole(tmp_path):
    """A script that waits for the file may read it while it is empty."""
    path = tmp_path / "scheduler.json"
    path.touch()
    whole = threading.Timer(0.5, path.write_text, [json.dumps({"address": "tcp://host"})])
    whole.start()
    assert "missing port" in refused(str(path))
    whole.join()


# --- connections without a block


@pytest.mark.slow
def test_a_connection_lives_until_it_is_closed() -> None:
    logger = logging.getLogger("distributed.scheduler")
    level = logger.level
    first = connect("local", workers=1)
    second = connect("local", workers=1)
    assert first.submit(lambda: 7).result() == 7
    x = np.ones((3, 2), np.float32)
    model = nn.Linear(2, 1)
    np.testing.assert_array_equal(model.predict(x, client=second), model.predict(x, client=False))
    first.close()
    assert logger.level == logging.CRITICAL  # the second still quiets it
    assert first.client.status == "closed"
    with second as client:
        assert client is second.client
    assert client.status == "closed"
    second.close()
    assert logger.level == level
    with pytest.raises(SettingsError, match="which has been closed"):
        model.predict(x, client=first)
