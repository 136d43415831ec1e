r"""Features of the object in each picture, from store to store, in one Dask graph.

Every picture of a Parquet store or a PostgreSQL table is decoded; a detector finds objects; the box
with the highest score is cut out of the original; a second network computes its features, whose
signs are a binary code. Each partition is written as a Parquet file, or with --store zarr as a zarr
store. Existing ones are not made again, so a second call finishes the work of an interrupted one.
Pictures without a result are counted and named.

JD.com published this application with BigDL: SSD, then DeepBit.

Run: python examples/image_features.py 'shop/*.parquet' features/ \
         --detector detector.safetensors --describer deepbit.safetensors --workers 2
     python examples/image_features.py postgresql://me@host/shop features/ --table pictures \
         --key id --detector detect.prototxt --detector-look 384,1,0,1 --describer net.onnx
A look is the side in pixels, the channels (3, 1 or bgr), and mean and deviation in fractions of
white, one number or one for each channel ("0.41/0.46/0.48").
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import numpy as np
from PIL import Image

import daskdl
from daskdl import SampleSet, connect
from daskdl.console import argument_parser, natural, positive, script
from daskdl.data.image import ChannelOrder, Normalize, Resize, decode
from daskdl.data.sources.sql import from_table
from daskdl.errors import DataError, MissingExtraError
from daskdl.files import remove, replacing
from daskdl.search import packed

#: Pictures in a batch.
TOGETHER = 32


@dataclass(frozen=True)
class Look:
    """The input of a network: side in pixels, channels, mean and deviation, order of channels."""

    side: int
    channels: int = 3
    mean: float | tuple[float, ...] = 0.5
    deviation: float | tuple[float, ...] = 0.25
    bgr: bool = False

    @classmethod
    def of(cls, text: str) -> Look:
        """Parse "side,channels,mean,deviation"; the last ones may be left out."""
        side, channels, *levels = [*text.split(","), "3"][: max(2, text.count(",") + 1)]
        try:
            numbers = [tuple(map(float, level.split("/"))) for level in levels]
            look = cls(
                int(side), 3 if channels == "bgr" else int(channels),
                *(n[0] if len(n) == 1 else n for n in numbers), bgr=channels == "bgr",
            )  # fmt: skip
            if any(len(n) not in (1, look.channels) for n in numbers):
                raise ValueError
        except (TypeError, ValueError):
            raise argparse.ArgumentTypeError(
                "expected side,channels,mean,deviation, such as 300,3,0.5,0.25 or "
                f"300,bgr,0.41/0.46/0.48,0.0039, found {text!r}"
            ) from None
        return look

    def __call__(self, pictures: list[np.ndarray]) -> np.ndarray:
        """Return pictures uint8 (H, W, 3) as float32 (N, side, side, channels)."""
        if self.channels == 1:
            pictures = [np.asarray(Image.fromarray(p).convert("L"))[..., None] for p in pictures]
        resized = Resize((self.side, self.side))
        if self.bgr:
            resized = resized | ChannelOrder((2, 1, 0))
        return (resized | Normalize(self.mean, self.deviation))(pictures)


@dataclass(frozen=True)
class Settings:
    """Settings of every task."""

    folder: Path
    looks: tuple[Look, Look]
    least: float
    on_error: str
    most_pixels: int
    store: str = "parquet"


@dataclass
class Report:
    """Counts of a partition's pictures by outcome, and the seconds of each stage."""

    pictures: int = 0
    found: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)  # name and reason
    seconds: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        began = time.perf_counter()
        yield
        self.seconds[stage] += time.perf_counter() - began


def best_boxes(detector: Any, x: np.ndarray, least: float) -> list[tuple[np.ndarray, float, int]]:
    """Return box (fractions), score and label of each picture's best object; score 0 if none."""
    if hasattr(detector, "detect"):  # daskdl.models.SSD
        objects = [
            (d["boxes"], d["scores"], d["labels"]) for d in detector.detect(x, threads=1, most=1)
        ]
    else:  # another program's network, with rows of label, score and edges
        rows = detector.predict(x, threads=1)
        objects = [(r[:, 2:], np.where(r[:, 0] < 0, 0, r[:, 1]), r[:, 0]) for r in rows]
    best: list[tuple[np.ndarray, float, int]] = []
    none = np.zeros(4), 0.0, -1
    for boxes, scores, labels in objects:
        i = int(np.argmax(scores)) if len(scores) else -1
        some = i >= 0 and scores[i] > least
        best.append((boxes[i], float(scores[i]), int(labels[i])) if some else none)
    return best


def pixels_of(box: np.ndarray, picture: np.ndarray) -> tuple[int, int, int, int]:
    """Return the edges of a box in whole pixels, inside the picture and at least 1 x 1."""
    height, width = picture.shape[:2]
    left = int(np.clip(np.floor(box[0] * width), 0, width - 1))
    top = int(np.clip(np.floor(box[1] * height), 0, height - 1))
    right = int(np.clip(np.ceil(box[2] * width), left + 1, width))
    bottom = int(np.clip(np.ceil(box[3] * height), top + 1, height))
    return left, top, right, bottom


def decoded(record: Any, name: str, most_pixels: int) -> np.ndarray:
    """Decode a picture; a DataError says if it is not one or has too many pixels."""
    if isinstance(record, np.ndarray):  # from a file
        record = record.tobytes()
    if not isinstance(record, bytes):
        raise DataError(f"{name}: expected the bytes of a picture, found {record!r}")
    try:
        width, height = Image.open(io.BytesIO(record)).size  # from its header
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        width = height = 0  # decode() raises the error
    if width * height > most_pixels:
        raise DataError(f"{name}: expected up to {most_pixels:,} pixels, found {width} x {height}")
    return decode(record, upright=True, name=name)


def file_of(file: Any, url: str) -> dict[str, Any]:
    """Return a file as a record like a table's."""
    return {"image": np.frombuffer(file.read(), np.uint8), "name": url}


def features_of(recipe: Any, models: tuple[Any, Any], path: Path, settings: Settings) -> Report:
    """Process a partition, write its file, and return the report."""
    report, rows = Report(), []
    with report.timed("read"):
        batch = recipe.load().take(np.arange(len(recipe)))
    names, records = [str(name) for name in batch["name"]], batch["image"]
    report.pictures = len(names)
    for i in range(0, len(names), TOGETHER):
        rows += rows_of(
            names[i : i + TOGETHER], records[i : i + TOGETHER], models, settings, report
        )
    report.found = len(rows)
    with report.timed("write"):
        write(rows, report, path)
    return report


def rows_of(
    names: list[str], records: Any, models: tuple[Any, Any], settings: Settings, report: Report
) -> list[dict[str, Any]]:
    """Return a row for each picture with an object; the report gets the others."""

    def leave_out(name: str, reason: str) -> None:
        if settings.on_error == "raise":
            raise DataError(f"{reason}; leave such pictures out by --on-error skip")
        report.left_out.append((name, reason))

    pictures: list[tuple[str, np.ndarray]] = []
    crops, rows = [], []
    with report.timed("decode"):
        for name, record in zip(names, records, strict=True):
            try:
                pictures.append((name, decoded(record, name, settings.most_pixels)))
            except DataError as error:
                leave_out(name, str(error).partition("; leave such")[0])
    if not pictures:
        return []
    with report.timed("detect"):
        x = settings.looks[0]([picture for _, picture in pictures])
        boxes = best_boxes(models[0], x, settings.least)
    with report.timed("crop"):
        for (name, picture), (box, score, label) in zip(pictures, boxes, strict=True):
            if score == 0:
                leave_out(name, f"{name}: expected an object above {settings.least:g}, found none")
                continue
            left, top, right, bottom = edges = pixels_of(box, picture)
            crops.append(picture[top:bottom, left:right])
            rows.append({"name": name, "box": list(edges), "score": score, "label": label})
        x = settings.looks[1](crops) if crops else None
    with report.timed("features"):
        if x is not None:
            features = models[1].predict(x, threads=1).reshape(len(x), -1)
            for row, numbers, code in zip(rows, features, packed(features), strict=True):
                row |= {"features": numbers, "code": code.tobytes()}
    return rows


def write(rows: list[dict[str, Any]], report: Report, path: Path) -> None:
    """Write a partition's rows and report; the file gets its name when it is complete."""
    counts = {"pictures": report.pictures, "found": report.found, "left_out": report.left_out}
    write_rows = write_zarr if path.suffix == ".zarr" else write_parquet
    try:
        with replacing(path) as temporary:
            write_rows(rows, json.dumps(counts), temporary)
    except OSError as error:
        raise DataError(
            f"{path}: expected to write {len(rows)} rows, found {error.strerror or error}; make "
            "room and call again: partitions that have their file are not done again"
        ) from error


def write_parquet(rows: list[dict[str, Any]], report: str, path: Path) -> None:
    """Write rows as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [("name", pa.string()), ("box", pa.list_(pa.int32(), 4)), ("score", pa.float32()),
         ("label", pa.int32()), ("features", pa.list_(pa.float32())), ("code", pa.binary())],
        {"report": report},
    )  # fmt: skip
    with path.open("wb") as file:
        pq.write_table(pa.Table.from_pylist(rows, schema), file)


def write_zarr(rows: list[dict[str, Any]], report: str, path: Path) -> None:
    """Write rows as a zarr store along "picture"; without rows it has only attributes."""
    import xarray as xr

    dtypes = {"name": object, "box": np.int32, "score": np.float32, "label": np.int32,
              "features": np.float32}  # fmt: skip
    arrays = {name: np.array([row[name] for row in rows], d) for name, d in dtypes.items()}
    arrays["code"] = np.array([np.frombuffer(row["code"], np.uint8) for row in rows])
    columns = {name: (("picture", f"{name}_item")[: a.ndim], a) for name, a in arrays.items()}
    xr.Dataset(columns if rows else {}, None, {"report": report}).to_zarr(path, consolidated=False)


def report_of(path: Path) -> Report:
    """Return the report in an existing file."""
    if path.suffix == ".zarr":
        import zarr

        text = str(zarr.open_group(path, mode="r").attrs["report"])
    else:
        import pyarrow.parquet as pq

        text = pq.read_schema(path).metadata[b"report"]
    report = json.loads(text)
    return Report(report["pictures"], report["found"], [tuple(n) for n in report["left_out"]])


def graph(
    samples: SampleSet, models: tuple[Any, Any], settings: Settings, source: str
) -> list[Any]:
    """Return a lazy report for each partition: of its file, or of the task that writes the file.

    A file's name has a digest of its pictures, networks and settings, so that files of others are
    not taken for it.
    """
    settings.folder.mkdir(parents=True, exist_ok=True)
    weights = [hashlib.sha256(model.snapshot()).hexdigest() for model in models]
    rules = settings.looks, settings.least, settings.on_error, settings.most_pixels
    same = f"{source} {samples.partitions} {weights} {rules}"
    networks = dask.delayed(models, pure=True, traverse=False)
    reports, wanted = [], set()
    for i, recipe in enumerate(samples.recipes):
        made_of = f"{same} {i} {len(recipe)} {recipe.version}"
        digest = hashlib.sha256(made_of.encode()).hexdigest()[:12]
        path = settings.folder / f"part-{i:05d}-{digest}.{settings.store}"
        wanted.add(path.name)
        task = report_of if path.exists() else features_of
        inputs = (path,) if path.exists() else (recipe, networks, path, settings)
        reports.append(dask.delayed(task, traverse=False)(*inputs))
    others = sorted({p.name for p in settings.folder.glob("part-*.*")} - wanted)
    if others:
        raise DataError(
            f"{settings.folder}: expected an empty folder, or files of the same pictures, networks "
            f"and settings, found {others[0]}; give another folder"
        )
    return reports


def main(arguments: list[str] | None = None) -> Report:
    """Process missing partitions, and return the report of all partitions together."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "source", help="Parquet files, a folder of pictures, or postgresql://user@host/database"
    )
    parser.add_argument("folder", type=Path, help="for the results")
    parser.add_argument("--store", choices=["parquet", "zarr"], default="parquet")
    parser.add_argument("--table", help="of the database")
    parser.add_argument("--key", help="column of the table with different values")
    parser.add_argument("--partitions", type=positive, help="of the table")
    parser.add_argument("--image", default="image", help="column of bytes")
    parser.add_argument("--name", default="name", help="column of names")
    parser.add_argument("--detector", required=True, help=".safetensors, .prototxt or .onnx")
    parser.add_argument("--describer", required=True, help="likewise")
    parser.add_argument("--detector-look", type=Look.of, default=Look(128), help="see above")
    parser.add_argument("--describer-look", type=Look.of, default=Look(28, 1, 0.286, 0.353),
                        help="likewise")  # fmt: skip
    parser.add_argument("--least", type=float, default=0.5, help="score of an object")
    parser.add_argument("--on-error", choices=["raise", "skip"], default="skip")
    parser.add_argument("--most-pixels", type=positive, default=50_000_000, help="of a picture")
    parser.add_argument("--cluster", default="local", help="address, file or YAML; see connect()")
    parser.add_argument("--workers", type=natural, default=2, help="0: all in this process")
    options = parser.parse_args(arguments)
    if options.store == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError(
            "image_features: expected pyarrow, found none; pip install -e '.[parquet]'"
        )

    columns, source = {"image": options.image, "name": options.name}, options.source
    if source.startswith("postgresql:"):
        if not (options.table and options.key):
            parser.error("expected --table and --key for a database")
        samples = from_table(source, options.table, key=options.key,
                             partitions=options.partitions, **columns)  # fmt: skip
        source = f"{options.table} {options.key}"  # without the password
    elif Path(source).is_dir() and not any(Path(source).glob("*.parquet")):
        samples = SampleSet.from_files(source, file_of, partitions=options.partitions)
    else:
        samples = SampleSet.from_parquet(source, **columns)
    models = tuple(
        daskdl.load(path, **({} if path.endswith(".safetensors") else {"channels_last": True}))
        for path in (options.detector, options.describer)
    )
    looks = options.detector_look, options.describer_look
    settings = Settings(options.folder, looks, options.least, options.on_error,
                        options.most_pixels, options.store)  # fmt: skip
    total = Report()
    workers = options.workers
    with connect(options.cluster, workers=workers) if workers else nullcontext() as client:
        if client:
            client.upload_file(__file__)  # workers elsewhere cannot import this module
        for report in dask.compute(*graph(samples, models, settings, source), retries=2):
            total.pictures += report.pictures
            total.found += report.found
            total.left_out += report.left_out
            total.seconds += report.seconds
    for temporary in options.folder.glob(".part-*"):  # left by lost workers
        remove(temporary)
    print(f"{total.pictures:,} pictures, {total.found:,} with features in {options.folder}, "
          f"{len(total.left_out):,} left out")  # fmt: skip
    for _, reason in total.left_out:
        print("left out:", reason)
    done = sum(total.seconds.values())
    print(", ".join(f"{stage} {s:.1f} s" for stage, s in total.seconds.items()) or "nothing to do",
          f"({done:.1f} s of all tasks)" if done else "")  # fmt: skip
    return total


if __name__ == "__main__":
    script(main)
