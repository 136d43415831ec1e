"""``python -m ci.bench.image_features``: features from store to store, against two simple loops.

`examples/image_features.py` on one core, against a loop of OpenCV (decode, its DNN module, write)
and a loop of onnxruntime (OpenCV decodes), with the same two networks, written as ONNX, and the
same batch size. All read the same Parquet store of JPEG files, and write the same columns. Speeds
are by CPU time of one thread, which other programs disturb less. Then follow the speed of each
stage, and the pictures a second of one and two workers. With a ratio above 1 ours is faster.
"""

from __future__ import annotations

import argparse
import importlib
import io
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from ci.bench.inference.runtimes import by_onnxruntime
from ci.bench.timing import turns
from daskdl import SampleSet, connect
from daskdl.interop import onnx
from daskdl.kernels.detection import decoded
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.models import SSD300, DeepBit, MobileSSD
from daskdl.models.vgg import VGG16Trunk
from daskdl.nn import Module

#: Stages that move pictures and do not compute.
MOVING = ("read", "crop", "write")
#: Height and width of the pictures, as in a shop's catalogue.
HEIGHT, WIDTH = 360, 480
#: Side of the second network's pictures, and pictures in one call of a network.
CROP, TOGETHER = 224, 32

#: From pictures (N, H, W, 3) float32 to the outputs of a network.
Network = Callable[[np.ndarray], list[np.ndarray]]


def example(name: str) -> Any:
    """Import an example; its folder is on the path, as examples import each other."""
    if (folder := str(Path(__file__).resolve().parents[2] / "examples")) not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def write_store(path: Path, count: int) -> None:
    """Write scenes of photographs with objects as JPEG files, 64 to a row group."""
    scenes = example("scenes")
    draw = scenes.Scenes(scenes.photographs("test"), WIDTH)
    rng, rows = np.random.default_rng(0), []
    for i in range(count):
        file = io.BytesIO()
        Image.fromarray(draw.draw(rng)[0][:HEIGHT]).save(file, "JPEG", quality=90)
        rows.append({"name": f"picture {i}", "image": file.getvalue()})
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=64)


def opencv(path: Path, outputs: int) -> Network:
    """Return the network of an ONNX file, run by OpenCV."""
    net = cv2.dnn.readNetFromONNX(str(path))
    names = net.getUnconnectedOutLayersNames()

    def run(x: np.ndarray) -> list[np.ndarray]:
        net.setInput(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
        return list(net.forward(names))[:outputs]

    return run


def runtime(path: Path, outputs: int) -> Network:
    """Return the network of an ONNX file, run by onnxruntime on one thread."""
    infer = by_onnxruntime(str(path), 1)

    def run(x: np.ndarray) -> list[np.ndarray]:
        return list(infer(np.ascontiguousarray(x.transpose(0, 3, 1, 2))))[:outputs]

    return run


def loop(store: Path, out: Path, detect: Network, describe: Network, priors: Any, side: int) -> int:
    """Do the work of the example in a simple loop; return the number of pictures with features."""
    file, done, pixels_of = pq.ParquetFile(store), 0, example("image_features").pixels_of
    for group in range(file.num_row_groups):
        batch, rows = file.read_row_group(group).to_pydict(), []
        for start in range(0, len(batch["name"]), TOGETHER):
            records = batch["image"][start : start + TOGETHER]
            pictures = [
                cv2.cvtColor(cv2.imdecode(np.frombuffer(r, np.uint8), 1), cv2.COLOR_BGR2RGB)
                for r in records
            ]
            offsets, logits = detect(seen(pictures, side))
            chances = np.exp(logits - logits.max(-1, keepdims=True))
            chances = chances[..., 1:] / chances.sum(-1, keepdims=True)
            crops, about = [], []
            for i, picture in enumerate(pictures):
                best, label = np.unravel_index(chances[i].argmax(), chances[i].shape)
                edges = decoded(offsets[i, best : best + 1], priors[best : best + 1])[0]
                left, top, right, bottom = pixels_of(edges, picture)
                crops.append(picture[top:bottom, left:right])
                about.append((batch["name"][start + i], [left, top, right, bottom],
                              float(chances[i, best, label]), int(label)))  # fmt: skip
            (numbers,) = describe(seen(crops, CROP))
            codes = np.packbits(numbers > 0, axis=1)
            rows += [
                {"name": n, "box": b, "score": s, "label": c, "features": f, "code": k.tobytes()}
                for (n, b, s, c), f, k in zip(about, numbers, codes, strict=True)
            ]
        pq.write_table(pa.Table.from_pylist(rows), out / f"{group}.parquet")
        done += len(rows)
    return done


def seen(pictures: list[np.ndarray], side: int) -> np.ndarray:
    """Return the input of a network for pictures, float32 (N, side, side, 3)."""
    small = np.stack([cv2.resize(p, (side, side), interpolation=cv2.INTER_AREA) for p in pictures])
    return (small.astype(np.float32) - np.float32(127.5)) * np.float32(1 / 63.75)


def ours(store: Path, out: Path, models: tuple[Module, Module], side: int) -> Any:
    """Return the reports of the example's tasks, lazily."""
    program = example("image_features")
    samples = SampleSet.from_parquet(store, image="image", name="name")
    looks = program.Look(side), program.Look(CROP)
    settings = program.Settings(out, looks, 0.0, "skip", 50_000_000)
    return program.graph(samples, models, settings, str(store))


def timed(work: Callable[[Path], int], folder: Path) -> list[float]:
    """Return the CPU milliseconds a picture of a contestant that writes to a new folder."""
    out = Path(tempfile.mkdtemp(dir=folder))
    began = time.process_time()
    count = work(out)
    return [1000 * (time.process_time() - began) / count]


def stages(reports: Any) -> str:
    """Return pictures a second on a core by stage, and the share of time of moving pictures."""
    seconds = sum((report.seconds for report in reports), Counter())
    count, total = sum(r.pictures for r in reports), sum(seconds.values())
    moving = sum(seconds[stage] for stage in MOVING)
    lines = [f"  {stage:<10} {count / s:>9.0f} pictures/s {s / total:>6.1%}"
             for stage, s in seconds.items()]  # fmt: skip
    return "\n".join([*lines, f"  reading, cutting and writing: {moving / total:.1%} of the time"])


def main() -> None:
    """Race the contestants, and print the pictures a second of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--width", type=float, default=0.25, help="of DeepBit's VGG-16")
    parser.add_argument("--published", action="store_true", help="SSD300, and a whole VGG-16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    options = parser.parse_args()
    cv2.setNumThreads(1)
    detector = SSD300(3) if options.published else MobileSSD(3, 128, 0.5)
    width, hidden = (1.0, 4096) if options.published else (options.width, 512)
    models = detector, DeepBit(256, VGG16Trunk(3, width=width, hidden=hidden))
    side, priors = detector.size, detector.priors.array
    with tempfile.TemporaryDirectory() as name, thread_budget(1):
        folder = Path(name)
        store, files = folder / "store.parquet", [folder / "detect.onnx", folder / "describe.onnx"]
        write_store(store, options.pictures)
        for model, file, size in zip(models, files, (side, CROP), strict=True):
            model.eval()
            onnx.save(model, file, (size, size, 3), channels_first=True)

        last: list[Any] = []

        def example_loop(out: Path) -> int:
            last[:] = dask.compute(*ours(store, out, models, side), scheduler="synchronous")
            return sum(report.pictures for report in last)

        contestants: dict[str, Callable[[Path], int]] = {"ours": example_loop}
        for peer, network in (("OpenCV", opencv), ("onnxruntime", runtime)):
            pair = network(files[0], 2), network(files[1], 1)
            contestants[peer] = lambda out, pair=pair: loop(store, out, *pair, priors, side)  # type: ignore[misc]
        each = {name: partial(timed, work, folder) for name, work in contestants.items()}
        best = {name: 1000 / of.least for name, of in turns(each, options.rounds).items()}
        for contestant, speed in best.items():
            print(f"{contestant:<12} {speed:>8.1f} pictures/s on one core")
        faster = max(best["OpenCV"], best["onnxruntime"])
        print(f"ratio to the faster of the two: {best['ours'] / faster:.2f}")
        print("stages of ours:", stages(last), sep="\n")
        for workers in options.workers:
            with connect("local", workers=workers):
                again = ours(store, folder / f"by {workers}", models, side)
                began = time.perf_counter()
                reports = dask.compute(*again)
                seconds = time.perf_counter() - began
            count = sum(report.pictures for report in reports)
            print(f"{workers} workers: {count / seconds:.1f} pictures/s with their start-up")


if __name__ == "__main__":
    main()
