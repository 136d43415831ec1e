"""Clusters of dask-gateway; a real gateway if dask-gateway-server is installed."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daskdl.cluster import connect
from daskdl.errors import ClusterError, MissingExtraError
from tests.daskdl.train.runs import Do, digest, fit, problem

# Objects of dask-gateway complain in garbage collection that their event loop has ended.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <function Gateway:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def _nothing_is_left_to_the_collector() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def yaml(tmp_path: Path) -> Path:
    return tmp_path / "site.yaml"


@pytest.mark.slow
def test_a_gateway_without_the_extra(yaml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask_gateway", None)
    yaml.write_text("system: gateway\naddress: http://127.0.0.1:1\n")
    with pytest.raises(MissingExtraError, match=r"pip install daskdl\[gateway\]"), connect(yaml):
        pass


def test_a_gateway_that_does_not_answer(yaml: Path) -> None:
    pytest.importorskip("dask_gateway")
    yaml.write_text("system: gateway\naddress: http://127.0.0.1:1\n")
    message = r"site.yaml: expected the gateway at http://127.0.0.1:1 to start a cluster, found \w"
    with pytest.raises(ClusterError, match=message) as raised, connect(yaml):
        pass
    assert "\n" not in str(raised.value)


# --- a real gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway whose clusters are processes of this machine; yield its address."""
    pytest.importorskip("dask_gateway")
    program = shutil.which("dask-gateway-server", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("needs dask-gateway-server and its local backend")
    folder = tmp_path_factory.mktemp("gateway")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    (folder / "config.py").write_text(
        "c.DaskGateway.backend_class = 'dask_gateway_server.backends.local.UnsafeLocalBackend'\n"
        f"c.Proxy.address = {address!r}\n"
        f"c.UnsafeLocalBackend.clusters_directory = {str(folder)!r}\n"
        # Not dask-scheduler and dask-worker, which Dask no longer has.
        "c.ClusterConfig.scheduler_cmd = ['dask', 'scheduler']\n"
        "c.ClusterConfig.worker_cmd = ['dask', 'worker']\n"
    )
    root = str(Path(__file__).resolve().parents[4])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [program, "--config", str(folder / "config.py")],
            env=os.environ | {"PATH": path, "PYTHONPATH": root},
            stdout=log,
            stderr=log,
        )
    limit = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"http://{address}/api/health", timeout=1).close()
            break
        except OSError:
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < limit, (folder / "log").read_text()
            time.sleep(0.05)
    yield f"http://{address}"
    server.send_signal(signal.SIGINT)
    server.wait(60)


@pytest.mark.kills
@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_training_behind_a_gateway_gives_the_same_bits(
    gateway: str, yaml: Path, engine: str
) -> None:
    yaml.write_text(f"system: gateway\naddress: {gateway}\njobs: 2\n")
    with connect(yaml) as client:
        client.wait_for_workers(2, timeout=60)
        pids: dict[str, Any] = client.run(os.getpid)
        kill = Do(9, lambda: os.kill(min(pids.values()), signal.SIGKILL))
        trainer = fit(problem(), client=client, engine=engine, callbacks=[kill])
    assert kill.done
    assert digest(trainer) == digest(fit(problem()))
