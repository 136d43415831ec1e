"""A hostile file of PyTorch's costs at most four times its size and 50 MB of memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.daskdl.interop.torch_weights.test_reader import saved_pickle

#: What is read, each file in a process of its own that has read a small one.
MEASURE = """
import json, os, sys
from daskdl.errors import DaskdlError
from daskdl.interop import read

def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024

read(sys.argv[1])
for path in sys.argv[2:]:
    if not os.fork():
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before, sentence = memory("VmRSS"), "read"
        try:
            read(path)
        except DaskdlError as error:
            sentence = str(error)
        print(json.dumps([path, sentence, memory("VmHWM") - before]), flush=True)
        os._exit(0)
    os.wait()
"""


def hostile():
    """Return pickles by name; each is small, and would be much if it were believed."""
    many = b"\x80\x02]("
    return {
        "lists": many + b"]" * 2_000_000 + b"e.",
        "dicts": many + b"}" * 2_000_000 + b"e.",
        "numbers": many + b"K\x01" * 2_000_000 + b"e.",
        "texts": many + b"X\x01\x00\x00\x00a" * 1_000_000 + b"e.",
        "memo": b"\x80\x02]"
        + b"".join(b"r" + i.to_bytes(4, "little") for i in range(800_000))
        + b".",
        "tuples": many + b")" * 2_000_000 + b"e.",
        "deep": b"\x80\x02" + b"]" * 1_000_000 + b"a" * 999_999 + b".",
    }


@pytest.mark.slow
def test_memory_is_at_most_four_times_the_file_and_50_megabytes(tmp_path, torch):
    small = tmp_path / "small.pt"
    torch.save({"w": torch.zeros(3)}, small)
    paths = []
    for name, data in hostile().items():
        paths.append(tmp_path / f"{name}.pt")
        saved_pickle(paths[-1], data)
    one = torch.zeros(2_000_000)
    for zipped in (True, False):
        paths.append(tmp_path / f"views{zipped}.pt")
        state = {f"w{i}": one[: 1_000_000 + i] for i in range(200)}
        torch.save(state, paths[-1], _use_new_zipfile_serialization=zipped)
    paths.append(tmp_path / "weights.pt")
    torch.save({"w": torch.zeros(4_000_000)}, paths[-1])
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, small, *paths], capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(found) == len(paths)
    sizes = {str(path): path.stat().st_size for path in paths}
    for path, sentence, taken in found:
        assert taken <= 4 * sizes[path] + 50_000_000, (path, sentence)
    assert {sentence for path, sentence, _ in found if "weights" in path} == {"read"}
