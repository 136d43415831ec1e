"""A worker and the driver are killed while a scene is predicted, and no bit of it changes."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr

from daskdl import load, save
from tests.daskdl.clusters import small_client
from tests.daskdl.predict.scenes.test_scene import NETWORKS

pytestmark = [pytest.mark.kills, pytest.mark.slow]
DRIVER = """
import sys
import zarr
from daskdl import load

if __name__ == "__main__":
    tile = dict.fromkeys((0, 1), int(sys.argv[1]))
    load("model").predict(zarr.open("scene.zarr", mode="r"), tile=tile, out="scores.zarr")
"""


def _chunks(out):
    return len([*out.rglob("c/*/*/0")]) if out.exists() else 0


@pytest.fixture(params=[900, pytest.param(4096, marks=pytest.mark.long)])
def scene(request, tmp_path):
    """Return a scene whose prediction takes some seconds and its tiles, with a model in a file."""
    side = request.param
    cells = np.random.default_rng(0).normal(size=(side, side, 3)).astype(np.float32)
    save(NETWORKS["dilated"], tmp_path / "model")
    chunk = side // 4 - 24
    stored = zarr.create_array(tmp_path / "scene.zarr", data=cells, chunks=(chunk, chunk, 3))
    return stored, dict.fromkeys((0, 1), 64 if side < 1000 else 256)


@pytest.mark.long
def test_another_driver_continues_for_a_killed_one(scene, tmp_path):
    stored, tile = scene
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, "driver.py", str(tile[0])]
    driver = subprocess.Popen(command, cwd=tmp_path, env={**os.environ})
    out = tmp_path / "scores.zarr"
    while _chunks(out) < 20:
        assert driver.poll() is None
        time.sleep(0.01)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert _chunks(out) < 15 * 15
    model = load(tmp_path / "model")
    array = model.predict(stored, tile=tile, out=out)
    np.testing.assert_array_equal(array[:], model.predict(stored[:][None])[0])


def test_a_killed_worker_changes_no_bit(scene, tmp_path):
    (stored, tile), model, out = scene, load(tmp_path / "model"), tmp_path / "scores.zarr"
    with small_client(2, default=True, processes=True) as client:
        pids, written = client.run(os.getpid), []

        def kill():
            while _chunks(out) < 10:
                time.sleep(0.01)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
            written.append(_chunks(out))

        killer = threading.Thread(target=kill)
        killer.start()
        array = model.predict(stored, tile=tile, out=out)
        killer.join()
    assert written[0] < 15 * 15
    np.testing.assert_array_equal(array[:], model.predict(stored[:][None])[0])
