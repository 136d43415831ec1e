"""A worker and the driver are killed while a scene is predicted, and no bit of it changes."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskdl import load, save
from daskdl.models import UNet

pytestmark = [pytest.mark.kills, pytest.mark.slow]
TILE = {0: 64, 1: 64}
DRIVER = """
import sys
import numpy as np
from daskdl import load

if __name__ == "__main__":
    load("model").predict(np.load("scene.npy", "r"), tile={0: 64, 1: 64}, out="scores.zarr")
"""


def _chunks(out):
    return len([*out.rglob("c/*/*/0")]) if out.exists() else 0


@pytest.fixture
def scene(tmp_path):
    """Return numbers whose prediction takes some seconds, with a model and a file of them."""
    cells = np.random.default_rng(0).normal(size=(960, 900, 3)).astype(np.float32)
    save(UNet(3, 2, (8, 16, 16)), tmp_path / "model")
    np.save(tmp_path / "scene.npy", cells)
    return cells


def test_a_killed_driver_is_gone_on_with(scene, tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    driver = subprocess.Popen([sys.executable, "driver.py"], cwd=tmp_path, env={**os.environ})
    out = tmp_path / "scores.zarr"
    while _chunks(out) < 20:
        assert driver.poll() is None
        time.sleep(0.01)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    there = _chunks(out)
    assert there < 15 * 15
    array = load(tmp_path / "model").predict(scene, tile=TILE, out=out)
    whole = load(tmp_path / "model").predict(scene[None])[0]
    np.testing.assert_array_equal(array[:], whole)


def test_a_killed_worker_changes_no_bit(scene, tmp_path):
    model, out = load(tmp_path / "model"), tmp_path / "scores.zarr"
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        pids = client.run(os.getpid)

        def kill():
            while _chunks(out) < 10:
                time.sleep(0.01)
            os.kill(next(iter(pids.values())), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        array = model.predict(np.load(tmp_path / "scene.npy", "r"), tile=TILE, out=out)
        killer.join()
    np.testing.assert_array_equal(array[:], model.predict(scene[None])[0])
