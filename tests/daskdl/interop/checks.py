"""Checks for files of all formats: damage, memory, and OpenCV's readers."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from daskdl.errors import DaskdlError


def mutants(data, count, seed=0):
    """Yield damaged copies: cut short, bits flipped, bytes repeated, left out or made large."""
    rng = np.random.default_rng(seed)
    whole = np.frombuffer(data, np.uint8)
    for i in range(count):
        damaged, at = whole.copy(), int(rng.integers(0, len(whole)))
        # Most of a file is numbers; half of the damage is done at its start, to names and sizes.
        at = at if i % 2 else int(rng.integers(0, min(len(whole), 600)))
        kind = i % 5
        if kind == 0:
            damaged = damaged[:at]
        elif kind == 1:
            places = rng.integers(0, len(whole), 3)
            damaged[places] ^= np.uint8(1) << rng.integers(0, 8, 3).astype(np.uint8)
        elif kind == 2:
            damaged[at : at + 4] = 255
        elif kind == 3:
            damaged = np.concatenate([damaged[:at], damaged[max(0, at - 50) :]])
        else:
            damaged[at] ^= np.uint8(1 << rng.integers(0, 8))
        yield damaged.tobytes()


def messages_of_mutants(read, data, count, kind=DaskdlError):
    """Return the beginnings of the messages that mutants raise; other exceptions go through."""
    messages = set()
    for mutant in mutants(data, count):
        try:
            read(mutant)
        except kind as error:
            message = str(error)
            assert "\n" not in message
            assert len(message) < 2000
            messages.add(message[:50])
    return messages


def run_on_zeros(net):
    """Run a network on zeros; lengths that its file leaves open come from small images."""
    images = (2, 3, 9, 8)
    net(*[
        np.zeros([n or images[i % 4] for i, n in enumerate(images if s is None else s)], d or "f4")
        for _, d, s in net.inputs
    ])  # fmt: skip


def opencv(kind: str) -> Any:
    """Return OpenCV's function that reads files of Caffe, Tensorflow or Torch; skip without it."""
    dnn = pytest.importorskip("cv2").dnn
    if not hasattr(dnn, f"readNetFrom{kind}"):
        pytest.skip(f"this OpenCV reads no files of {kind}")
    return getattr(dnn, f"readNetFrom{kind}")


#: Reads all files in one process: starting a process takes longer than all the reading.
MEASURE = """
import json, os, sys
import daskdl
from daskdl.errors import DaskdlError

def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024

def attempt(path):
    try:
        (daskdl.interop.read if path.endswith(".pt") else daskdl.load)(path)
        return "read"
    except DaskdlError as error:
        return str(error)

small, large = json.loads(sys.argv[1])
for path in small:
    attempt(path)  # imports and compiles everything
for path in large:
    if not os.fork():  # a process of its own, which has read nothing large before
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = memory("VmRSS")
        sentence = attempt(path)
        print(json.dumps([path, sentence, memory("VmHWM") - before]), flush=True)
        os._exit(0)
    os.wait()
"""


def check_memory(small, sizes):
    """Return messages by the paths of large files; check that none takes too much memory."""
    paths = json.dumps([list(map(str, small)), list(map(str, sizes))])
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, paths], capture_output=True, text=True, check=True
    )
    peaks = [json.loads(line) for line in run.stdout.splitlines()]
    limits = {str(path): 4 * size + 50_000_000 for path, size in sizes.items()}
    assert {path for path, *_ in peaks} == limits.keys()
    for path, sentence, used in peaks:
        assert used <= limits[path], (path, sentence)
    return {path: sentence for path, sentence, _ in peaks}
