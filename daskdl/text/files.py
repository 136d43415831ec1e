"""Texts in files to vectors in files, by partition, on a cluster: ``daskdl embed``."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.functions import take
from daskdl.data.recipe import Recipe
from daskdl.data.results import Written, write_results
from daskdl.data.sources.dataframe import Columns
from daskdl.data.sources.parquet import row_groups
from daskdl.data.sources.urls import expanded
from daskdl.errors import DataError, SettingsError
from daskdl.nn import Module
from daskdl.predict.kept import held_by_workers
from daskdl.predict.partitions import naming
from daskdl.predict.predictor import Predictor
from daskdl.search import packed
from daskdl.text.model import TextModel
from daskdl.train.watch.progress import duration

#: Endings of files with a JSON object in each line.
LINES = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
#: Bytes of such a file per partition; a compressed file is one partition.
BLOCK = 2**25
#: Seconds between lines of progress.
EVERY = 10.0


def embed(
    model: TextModel,
    source: str,
    out: str | Path,
    column: str = "text",
    keep: Sequence[str] = (),
    progress: bool = False,
    numbers: str = "float32",
) -> Written:
    """Write the vectors, or scores, of texts in files; continue where an earlier call ended.

    Parameters
    ----------
    model : TextModel
    source : path, pattern or URL
        Parquet files, where each row group is a partition, or files with a JSON object in each
        line.
    out : path or URL
        Folder that gets ``part-00000.parquet`` and so on, one for each partition of the source,
        with the rows in order: ``vector`` (a list of fixed size), or a column for each label of a
        classifier.
    column : str
        Column of the texts.
    keep : sequence of str
        Further columns to write, such as an id.
    progress : bool
        Whether to print progress on standard error.
    numbers : "float32", "float16", "int8" or "binary"
        Format of vectors: int8 scales the largest magnitude of each vector to 127, which keeps
        cosines; binary has packed signs, as for :class:`daskdl.search.HammingIndex`.

    Raises
    ------
    DataError
        When nothing is at ``source``, or a column is missing or has no texts.
    SettingsError
        When ``out`` has results of another model, source or column.
    """
    if numbers not in NUMBERS:
        raise SettingsError(
            f"embed, numbers: expected {', '.join(NUMBERS)}, found {numbers!r}; bf16 is a precision"
        )
    if model.labels and numbers != "float32":
        raise SettingsError(f"embed, numbers: expected float32 of a classifier, found {numbers!r}")
    parts, version = _parts(str(source), sorted({*keep, column}))
    predictor = replace(model._predictor(), threads=model.threads or 1).snapshot()
    light, sent = replace(model, network=Module()), held_by_workers(predictor)
    from dask import delayed

    of_part = delayed(_vectors, pure=False)
    put = light, sent, column, (*keep,), numbers
    tasks = [of_part(part, i, *put) for i, part in enumerate(parts)]
    facts = [predictor.token, model.precision, column, *keep, version]
    if model.long != "cut":
        facts += [model.long, repr(model.tokenizer.truncation)]
    facts += [] if numbers == "float32" else [numbers]
    facts += [model.prompt] if model.prompt else []
    name = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    return write_results(tasks, out, version=name, tell=_Progress() if progress else None)


def _parts(source: str, columns: list[str]) -> tuple[list[Any], str]:
    """Return recipes or lazy lines per partition, and a text that changes with the files."""
    if not source.endswith(LINES):
        recipes = row_groups(source, Columns({name: name for name in columns}))
        return recipes, repr(recipes)
    from dask import bag

    urls = expanded(source, {})
    packed = source.endswith(".gz")
    lines = bag.read_text(urls, blocksize=None if packed else BLOCK)
    return lines.to_delayed(), repr(urls)


def _vectors(
    part: Any,
    number: int,
    model: TextModel,
    predictor: Predictor,
    column: str,
    keep: Sequence[str],
    numbers: str,
) -> dict[str, NDArray[Any]]:
    """Return the columns of one partition's results."""
    with naming(number):
        if isinstance(part, Recipe):
            columns = take(part.load(), np.arange(len(part)), (), ())
        else:
            columns = _columns([line for line in part if line.strip()], {*keep, column})
        texts = [*columns[column]]
        made = NUMBERS[numbers](model._vectors(texts, predictor))
    copied = {name: columns[name] for name in keep}
    named = zip(model.labels, made.T, strict=True) if model.labels else [("vector", made)]
    return copied | dict(named)


def _columns(lines: Sequence[str], names: set[str]) -> dict[str, Any]:
    rows = []
    for i, line in enumerate(lines):
        try:
            row = json.loads(line)
            rows.append({name: row[name] for name in names})
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"line {i} of the partition: expected an object of JSON with "
                f"{', '.join(sorted(names))}, found {line:.60} ({error}); mend that line"
            ) from error
    return {name: np.array([row[name] for row in rows], object) for name in names}


def _as_int8(vectors: Any) -> NDArray[np.int8]:
    largest = np.abs(vectors).max(1, keepdims=True, initial=np.finfo(np.float32).tiny)
    return np.rint(vectors * (127 / largest)).astype(np.int8)


#: Conversions of vectors, by the name of the format.
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "float32": lambda vectors: vectors,
    "float16": lambda vectors: vectors.astype(np.float16),
    "int8": _as_int8,
    "binary": packed,
}


class _Progress:
    """Prints progress: partitions, texts per second, and an estimate of the time left."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()

    def __call__(self, done: int, total: int, texts: int) -> None:
        now = time.monotonic()
        if done and (now - self._last >= EVERY or done == total):
            self._last, passed = now, now - self._began
            ahead = duration(passed / done * (total - done))
            rate = f"{texts / max(passed, 1e-9):,.0f} texts/s"
            print(
                f"{done} of {total} partitions, {rate}, {ahead} left", file=sys.stderr, flush=True
            )
