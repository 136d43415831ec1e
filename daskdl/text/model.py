"""TextModel: maps texts to vectors or scores, in this process or on a cluster."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ModelFileError, SettingsError, ShapeError
from daskdl.nn import Module
from daskdl.predict.kept import held_by_workers
from daskdl.predict.kinds import is_of
from daskdl.predict.partitions import naming
from daskdl.predict.predictor import Predictor
from daskdl.text.encoder import WORDS, batches
from daskdl.text.tokens import windows_of

logger = logging.getLogger(__name__)

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TextModel:
    """A network with its tokenizer.

    A text has the same vector, bit for bit, next to any other texts and on any number of threads
    and workers: texts with equal numbers of tokens pass together, without padding.

    Parameters
    ----------
    network : Module
        Maps ids (N, T) to (N, C).
    tokenizer : tokenizers.Tokenizer
        It cuts texts to the network's longest input.
    labels : list of str
        Names of the columns, for a classifier.
    threads : int, optional
        Threads for arithmetic, by default the caller's.
    precision : "float32" or "bf16"
    kind : str
        Kind of the folder's model, such as "bert".
    long : "cut", "mean" or "max"
        Texts longer than the tokenizer's limit are cut, with a warning in the log; or all their
        windows pass, and the mean or the maximum of the results is returned.
    prompt : str
        Text to insert before each text, such as "query: ".
    second : int
        Number added to the ids of a pair's second text; 0 if the network has no types of texts.

    Examples
    --------
    >>> model = load("all-MiniLM-L6-v2")  # doctest: +SKIP
    >>> vectors = model(dask_frame["text"])  # doctest: +SKIP
    >>> vectors.to_parquet("vectors/")  # doctest: +SKIP
    """

    network: Module
    tokenizer: Any = field(repr=False)
    labels: list[str] = field(default_factory=list)
    threads: int | None = None
    precision: str = "float32"
    kind: str = ""
    long: str = "cut"
    prompt: str = ""
    second: int = 0

    def __post_init__(self) -> None:
        if self.long not in ("cut", "mean", "max"):
            raise SettingsError(f"TextModel.long: expected cut, mean or max, found {self.long!r}")

    def __call__(self, texts: Any) -> Any:
        """Return the vectors or scores (N, C) of texts, or of pairs of texts.

        Parameters
        ----------
        texts : str, sequence of str or of pairs, or a collection
            A Series, or a DataFrame with pairs in two columns, of pandas or Dask gives a DataFrame
            with the same index; a Bag gives a Bag of arrays; an xarray DataArray (N,) gives one
            (N, C); a single text gives (C,). For Dask collections the result is lazy, with the same
            partitions.

        Returns
        -------
        float32 (N, C), or such a collection
            A model of tokens returns a list, Series or Bag with float32 (tokens, C) for each text.

        Raises
        ------
        DataError
            When an element is no text.
        """
        if isinstance(texts, str):
            return self([texts])[0]
        if is_of(texts, "dask.dataframe", "Series", "DataFrame"):
            meta = _frame(self._of_none(), texts._meta.index, self.labels)
            return texts.map_partitions(_of_series, *self._sent(), meta=meta)
        if is_of(texts, "dask.bag", "Bag"):
            return texts.map_partitions(_of_bag, *self._sent())
        if is_of(texts, "xarray", "DataArray"):
            return self._of_dataarray(texts)
        if is_of(texts, "pandas", "Series", "DataFrame"):
            return _of_series(texts, self, self._predictor())
        return self._vectors(list(texts), self._predictor())

    def classify(self, texts: Any) -> Any:
        """Return the label of each text with the largest score.

        Parameters
        ----------
        texts : as in a call
            A Series or DataFrame of pandas or Dask gives a Series; a text its label; others a list.

        Examples
        --------
        >>> model = load("distilbert-sst2", "classify")  # doctest: +SKIP
        >>> model.classify(["What a day!"])  # doctest: +SKIP
        ['POSITIVE']
        """
        if not self.labels:
            raise SettingsError(
                "TextModel.classify: expected a model with labels, found none; "
                "load(folder, 'classify') makes one"
            )
        if isinstance(texts, str):
            return self.classify([texts])[0]
        scores = self(texts)
        if is_of(scores, "dask.dataframe", "DataFrame") or is_of(scores, "pandas", "DataFrame"):
            return scores.idxmax(axis=1)
        return [self.labels[i] for i in np.asarray(scores).argmax(-1)]

    def rank(self, query: str, texts: Sequence[str]) -> tuple[NDArray[np.int64], Array]:
        """Return the order of texts, the best for a query first, and their scores.

        The model must be a cross-encoder, with one score for each pair of texts. For many queries,
        call the model with all pairs, such as a DataFrame with two columns.

        Returns
        -------
        order : int64 (N,)
            Places in ``texts``; texts with equal scores keep their order.
        scores : float32 (N,)
            Scores in this order.

        Examples
        --------
        >>> model = load("ms-marco-MiniLM-L6-v2", "classify")  # doctest: +SKIP
        >>> order, scores = model.rank("How is rain measured?", texts)  # doctest: +SKIP
        """
        scores = self([(query, text) for text in texts])
        if scores.shape[1] != 1:
            raise SettingsError(
                f"TextModel.rank: expected a model with one score for a pair, found "
                f"{scores.shape[1]}; load a cross-encoder with the task classify"
            )
        order = np.argsort(-scores[:, 0], kind="stable")
        return order, scores[order, 0]

    def metadata(self) -> dict[str, Any]:
        """Return tokenizer and settings for a model file, which :meth:`of_file` and streams read.

        Examples
        --------
        >>> daskdl.save(model.network, "calls.safetensors", model.metadata())  # doctest: +SKIP
        """
        names = "labels", "kind", "long", "prompt", "second"
        return {"tokens": self.tokenizer.to_str(), **{name: getattr(self, name) for name in names}}

    @classmethod
    def of_file(
        cls, network: Module, metadata: Mapping[str, Any], threads: int | None = None
    ) -> TextModel:
        """Return the model of a model file: ``of_file(daskdl.load(path), read_metadata(path))``.

        Raises
        ------
        ModelFileError
            When the file has no tokenizer.
        """
        from tokenizers import Tokenizer

        fields = dict(metadata)
        try:
            return cls(
                network.eval(), Tokenizer.from_str(fields.pop("tokens")), threads=threads, **fields
            )
        except Exception as error:  # the library raises Exception itself
            raise ModelFileError(
                "TextModel.of_file: expected the metadata of a TextModel, found others "
                f"({type(error).__name__}: {error}); save it with model.metadata()"
            ) from error

    def _of_none(self, predictor: Predictor | None = None) -> Any:
        """Return the result for no texts; one text is computed to know its width."""
        made = (predictor or self._predictor())(np.zeros((1, 1), np.int64))[:0]
        return [] if made.ndim == 3 else made

    def _of_dataarray(self, texts: Any) -> Any:
        import xarray

        if texts.ndim != 1:
            raise ShapeError(
                f"TextModel: expected a DataArray (N,) of texts, found shape {texts.shape}"
            )
        if texts.chunks is None:
            values = self._vectors(texts.values.tolist(), self._predictor())
        else:
            width = self._of_none().shape[1]
            values = texts.data.map_blocks(
                _of_array, *self._sent(), dtype=np.float32, new_axis=1,
                chunks=(*texts.chunks, (width,)),
            )  # fmt: skip
        names = {"feature": self.labels} if self.labels else {}
        coords = {**texts.coords, **names}
        return xarray.DataArray(values, coords, (*texts.dims, "feature"), texts.name)

    def _predictor(self) -> Predictor:
        # TextModel makes batches of texts of one length: so the batch size is fixed.
        return Predictor(
            self.network, batch_size=WORDS, threads=self.threads, precision=self.precision
        )

    def _sent(self) -> tuple[Any, Any]:
        """Return the model without weights, and its predictor, each once in a graph."""
        from dask import delayed

        predictor = replace(self._predictor(), threads=self.threads or 1).snapshot()
        light = replace(self, network=Module())
        name = f"tokens-{predictor.token}-{self.long}-{self.tokenizer.truncation}"
        return delayed(light, name=name, traverse=False), held_by_workers(predictor)

    def _vectors(self, texts: Sequence[Any], predictor: Predictor) -> Any:
        if self.prompt:
            texts = [self.prompt + text if isinstance(text, str) else text for text in texts]
        windows = windows_of(texts, self.tokenizer, self.second)
        counts = np.array([len(of_text) for of_text in windows], np.int64)
        if self.long == "cut" and (many := int((counts > 1).sum())):
            logger.warning(
                "%s of %s texts have more than %s tokens and were cut; long='mean' takes all",
                many, len(counts), self.tokenizer.truncation["max_length"],
            )  # fmt: skip
        if self.long == "cut":
            windows, counts = [of_text[:1] for of_text in windows], np.minimum(counts, 1)
        ids = [window for of_text in windows for window in of_text]
        result: Any = None
        for places in batches(np.array([len(one) for one in ids])):
            part = predictor(np.stack([ids[i] for i in places]))
            if result is None:
                shape = (len(ids), *part.shape[1:]) if part.ndim == 2 else (len(ids),)
                result = np.empty(shape, np.float32 if part.ndim == 2 else object)
            if part.ndim == 2:
                result[places] = part
            else:  # a model of tokens: texts have different numbers of them
                for i, one in zip(places, part, strict=True):
                    result[i] = one
        if result is None:
            return self._of_none(predictor)
        if result.ndim == 1:
            return list(result)
        return result if len(ids) == len(counts) else _joined(result, counts, self.long, predictor)


def _joined(windows: Array, counts: Any, long: str, predictor: Predictor) -> Array:
    """Return one result per text from its windows; scaled to length one if windows are."""
    starts = np.cumsum(counts) - counts
    if long == "max":
        result = np.maximum.reduceat(windows, starts)
    else:
        result = np.add.reduceat(windows, starts) / counts[:, None].astype(np.float32)
    if getattr(getattr(predictor.model, "model", predictor.model), "unit", False):
        lengths = np.linalg.norm(result, axis=1, keepdims=True)
        result = np.where(counts[:, None] > 1, result / np.maximum(lengths, 1e-12), result)
    return result


def _of_series(
    texts: Any, model: TextModel, predictor: Predictor, partition_info: Any = None
) -> Any:
    with naming((partition_info or {}).get("number", 0)):
        rows = texts.tolist() if texts.ndim == 1 else texts.to_numpy(object)
        return _frame(model._vectors(rows, predictor), texts.index, model.labels)


def _frame(values: Any, index: Any, labels: list[str]) -> Any:
    import pandas as pd

    if isinstance(values, list):
        return pd.Series(values, index, object)
    return pd.DataFrame(values, index=index, columns=labels or None)


def _of_array(texts: Any, model: TextModel, predictor: Predictor) -> Array:
    return model._vectors(texts.tolist(), predictor)


def _of_bag(texts: Any, model: TextModel, predictor: Predictor) -> list[Array]:
    return list(model._vectors(list(texts), predictor))
