"""Served models: a model file that answers records of a stream, with its name and sha256."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.text import Encode, Tokenizer, Vocabulary, lengths_of
from daskdl.errors import DataError, ModelFileError
from daskdl.nn.core.modelfile import fetched, is_url, load, read_metadata
from daskdl.predict import Predictor

#: Words of a text that are read, unless the model file says so.
LENGTH = 200
#: Texts that pass through a model at a time.
TOGETHER = 256


def text_metadata(
    vocabulary: Vocabulary, labels: Sequence[str] | None = None, length: int = LENGTH
) -> dict[str, Any]:
    """Return metadata that make a model file a model of texts.

    ``daskdl.save(model, path, text_metadata(vocabulary, labels))`` writes a file for ``daskdl
    stream``.

    Parameters
    ----------
    vocabulary : Vocabulary
        With a :class:`~daskdl.data.text.Tokenizer`.
    labels : sequence of str, optional
        Names of the classes, in their order.
    length : int
        Number of words to read of a text.

    Examples
    --------
    >>> vocabulary = Vocabulary.build(["pay my bill", "pay the bill"])
    >>> text_metadata(vocabulary, labels=["billing", "other"], length=20)["vocabulary"]["words"]
    ('bill', 'pay', 'my', 'the')
    """
    from dataclasses import asdict

    if not isinstance(vocabulary.tokenizer, Tokenizer):
        raise DataError(
            f"text_metadata: expected a Tokenizer, found {vocabulary.tokenizer!r}, which a file "
            "cannot keep; make the vocabulary with one"
        )
    words = {"tokenizer": asdict(vocabulary.tokenizer), "words": vocabulary.words[2:]}
    metadata: dict[str, Any] = {"vocabulary": words, "length": int(length)}
    return metadata if labels is None else {**metadata, "labels": list(labels)}


class ModelFile:
    """The bytes of a model file, to send to workers.

    Parameters
    ----------
    name : str
        Name of the model in answers.
    data : bytes

    Examples
    --------
    >>> import daskdl
    >>> daskdl.save(nn.Linear(3, 2), "small.safetensors")
    >>> file = ModelFile.read("small.safetensors")
    >>> file.name, len(file.sha256)
    ('small', 64)
    """

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        #: Of the file's bytes, in hexadecimal digits.
        self.sha256 = hashlib.sha256(data).hexdigest()

    @classmethod
    def read(cls, path: str | os.PathLike[str], name: str | None = None) -> ModelFile:
        """Read a path or URL; the name is by default the file's, without its suffix.

        Raises
        ------
        ModelFileError
            When it is missing.
        """
        path = os.fspath(path)
        try:
            if is_url(path):
                with fetched(path) as local:
                    data = Path(local).read_bytes()
            else:
                data = Path(path).read_bytes()
        except OSError as error:
            raise ModelFileError(
                f"{path}: expected a model file, found {error.strerror or error}; see the path"
            ) from error
        return cls(name or Path(path).stem, data)


class ServedModel:
    """A model at work: batches of decoded messages in, classes and probabilities out.

    A model takes texts if its file's metadata have a ``vocabulary``, or are of a
    :class:`~daskdl.text.TextModel`; any other takes arrays of numbers. A trial shows the kind of
    its results: log-probabilities (their exponentials add up to 1), probabilities, scores (which a
    softmax makes probabilities), or a value if there is one result. Raises ModelFileError if the
    file cannot be loaded.
    """

    def __init__(self, file: ModelFile, threads: int = 1) -> None:
        importlib.import_module("daskdl.models")  # which makes their names known to the model file
        self.name, self.sha256 = file.name, file.sha256
        with tempfile.TemporaryDirectory(prefix="daskdl-model-") as folder:
            path = Path(folder) / "model.safetensors"
            path.write_bytes(file.data)
            try:
                model, self.metadata = load(path), read_metadata(path)
            except ModelFileError as error:
                raise ModelFileError(str(error).replace(str(path), file.name)) from error
        self._encode = _encoding(self.metadata, file.name)
        self._labels: list[str] | None = self.metadata.get("labels")
        self._predictor, self._kind = Predictor(model, threads=threads), ""
        self._texts: Any = None  # an encoder, which makes batches itself
        if "tokens" in self.metadata:
            from daskdl.text import TextModel

            self._texts = TextModel.of_file(model, self.metadata, threads)
        self._head: list[str] = []
        self._tail = f'"model": {json.dumps(self.name)}, "sha256": "{self.sha256}"}}'

    def try_on(self, value: Any) -> None:
        """Try the model on one decoded message; for texts, on any text.

        Raises ModelFileError when the model cannot be applied to it.
        """
        try:
            self._start(self._inputs([value]))
        except Exception as error:  # whatever a model raises of what it was not made for
            raise ModelFileError(
                f"{self.name}: expected a model for messages such as {str(value)[:60]!r}, found "
                f"{type(error).__name__}: {error}"
            ) from error

    @property
    def takes_texts(self) -> bool:
        """Whether messages are texts, not numbers."""
        return self._encode is not None or self._texts is not None

    def _inputs(self, values: Sequence[Any]) -> Any:
        if self.takes_texts:
            wrong = [v for v in values if not isinstance(v, str)]
            if wrong:
                raise DataError(f"expected a text, found {type(wrong[0]).__name__}")
            return values if self._encode is None else self._encode({"x": values})["x"]
        return np.asarray(values, np.float32)

    def _start(self, one: Any) -> None:
        if self._texts is not None:
            result = self._texts(one[:1])
        else:
            self._predictor, result = self._predictor.tried(one[:1])
        result = np.asarray(result)
        self._kind = _kind_of(result)
        if self._kind == "value":
            return
        classes = result.shape[1]
        labels: Sequence[Any] = range(classes) if self._labels is None else self._labels
        if len(labels) != classes:
            raise ModelFileError(
                f"{self.name}: expected a label for each of {classes} classes, found {len(labels)}"
            )
        self.labels = [str(label) for label in labels]
        self._head = [f'{{"label": {json.dumps(label)}, "probability": ' for label in labels]

    def __call__(self, values: Sequence[Any]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return class and probability of each message; -1 and a value when there are no classes.

        Raises DataError if a message does not have the model's form, or a result is not finite.
        """
        x = self._inputs(values)
        if not self._kind:
            self._start(x)
        result = np.asarray(self._results(x), np.float64)
        if not np.isfinite(result).all():
            raise DataError("expected a finite result of the model, found NaN or infinity")
        if self._kind == "value":
            return np.full(len(x), -1), result.reshape(len(x))
        best = result.argmax(1)
        top = result[np.arange(len(x)), best]
        if self._kind == "scores":
            top = 1 / np.exp(result - top[:, None]).sum(1)
        return best, np.exp(top) if self._kind == "log-probabilities" else top

    def _results(self, x: Any) -> Any:
        if self._texts is not None:
            return self._texts(x)
        if self._encode is None or len(x) <= TOGETHER:
            return self._predictor(x)
        # Texts of one length together: a model that passes over padding has less of it to do.
        order = np.argsort(lengths_of(x), kind="stable")
        parts = [self._predictor(x[i]) for i in np.split(order, range(TOGETHER, len(x), TOGETHER))]
        result = np.concatenate(parts)
        back = np.empty_like(result)
        back[order] = result
        return back

    def label(self, best: int) -> str:
        """Return the name of a class; empty for a value."""
        return "" if best < 0 else self.labels[best]

    def answer(self, best: int, probability: float) -> bytes:
        """Return the JSON of an answer."""
        head = '{"value": ' if best < 0 else self._head[best]
        shown = repr(probability) if best < 0 else f"{probability:.6f}"
        return f"{head}{shown}, {self._tail}".encode()


def _encoding(metadata: dict[str, Any], name: str) -> Encode | None:
    words = metadata.get("vocabulary")
    if words is None:
        return None
    try:
        vocabulary = Vocabulary(words["words"], Tokenizer(**words["tokenizer"]))
        return Encode(vocabulary, int(metadata.get("length", LENGTH)))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{name}: expected a vocabulary in the model file's metadata as text_metadata makes "
            f"it, found something else ({type(error).__name__}: {error}); save the model again"
        ) from error


def _kind_of(result: NDArray[Any]) -> str:
    if result.ndim == 1 or (result.ndim == 2 and result.shape[1] == 1):
        return "value"
    if result.ndim != 2:
        raise DataError(f"expected results (n, classes) of the model, found shape {result.shape}")
    if (result <= 1e-6).all() and abs(float(np.exp(result).sum(1)[0]) - 1) < 1e-3:
        return "log-probabilities"
    if (result >= 0).all() and abs(float(result.sum(1)[0]) - 1) < 1e-3:
        return "probabilities"
    return "scores"
