"""TextModel: texts in, vectors or scores out, in this process or on a cluster."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import MissingExtraError, ModelFileError, SettingsError
from daskdl.nn import Module
from daskdl.predict.broadcast import held_by_workers
from daskdl.predict.partitions import naming
from daskdl.predict.predictor import Predictor
from daskdl.text.encoder import WORDS, TextHead, batches
from daskdl.text.folder import read_encoder, read_head, read_json
from daskdl.text.pooling import read_pooling
from daskdl.text.tokens import windows_of

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TextModel:
    """A network and the tokenizer that goes before it.

    A text has the same vector, bit for bit, whatever other texts there are, on any number of
    threads and workers: texts of one number of tokens pass together, and there is no padding.

    Parameters
    ----------
    network : Module
        Ids (N, T) to (N, C).
    tokenizer : tokenizers.Tokenizer
        Of texts; it cuts them to the longest that the network takes.
    labels : list of str
        Of the columns, for a classifier.
    threads : int, optional
        For arithmetic, by default those of the caller.
    precision : "float32" or "bf16"
    kind : str
        Of the folder, such as "bert".
    long : "cut", "mean" or "max"
        What becomes of texts with more tokens than the tokenizer cuts to: they are cut, which is
        logged; or all their windows pass, and the mean or the largest of the results is taken.

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

    def __post_init__(self) -> None:
        if self.long not in ("cut", "mean", "max"):
            raise SettingsError(f"TextModel.long: expected cut, mean or max, found {self.long!r}")

    def __call__(self, texts: Any) -> Any:
        """Return the vectors or scores (N, C) of texts.

        Parameters
        ----------
        texts : str, sequence of str, pandas or Dask Series, or Dask Bag
            A Series gives a DataFrame with its index, a Dask collection a lazy one of the same
            partitions, a single text one row without its axis.

        Raises
        ------
        DataError
            When one of them is no text.
        """
        if isinstance(texts, str):
            return self([texts])[0]
        if _is(texts, "dask.dataframe", "Series"):
            meta = _frame(np.empty((0, self.width), np.float32), texts._meta.index, self.labels)
            return texts.map_partitions(_of_series, *self._sent(), meta=meta)
        if _is(texts, "dask.bag", "Bag"):
            return texts.map_partitions(_of_bag, *self._sent())
        if _is(texts, "pandas", "Series"):
            return _of_series(texts, self, self._predictor())
        return self._vectors(list(texts), self._predictor())

    @property
    def width(self) -> int:
        """Columns of the result."""
        return int(self.network.predict(np.array([[0]]), threads=1).shape[1])

    def _predictor(self) -> Predictor:
        # Batches are made here, of texts of one length: nothing need be tried.
        return Predictor(
            self.network, batch_size=WORDS, threads=self.threads, precision=self.precision
        )

    def _sent(self) -> tuple[Any, Any]:
        """Return this without its weights and its predictor, each once in a graph."""
        from dask import delayed

        predictor = replace(self._predictor(), threads=self.threads or 1).snapshot()
        light = replace(self, network=Module())
        name = f"tokens-{predictor.token}-{self.long}-{self.tokenizer.truncation}"
        return delayed(light, name=name, traverse=False), held_by_workers(predictor)

    def _vectors(self, texts: Sequence[Any], predictor: Predictor) -> Array:
        windows = windows_of(texts, self.tokenizer)
        counts = np.array([len(of_text) for of_text in windows], np.int64)
        if self.long == "cut" and (many := int((counts > 1).sum())):
            logger.warning(
                "%s of %s texts have more than %s tokens and were cut; long='mean' takes all",
                many, len(counts), self.tokenizer.truncation["max_length"],
            )  # fmt: skip
        if self.long == "cut":
            windows, counts = [of_text[:1] for of_text in windows], np.minimum(counts, 1)
        ids = [window for of_text in windows for window in of_text]
        result: Array | None = None
        for places in batches(np.array([len(one) for one in ids])):
            part = predictor(np.stack([ids[i] for i in places]))
            if result is None:
                result = np.empty((len(ids), part.shape[1]), np.float32)
            result[places] = part
        if result is None:
            return np.empty((0, self.width), np.float32)
        return result if len(ids) == len(counts) else _joined(result, counts, self.long, predictor)


def _joined(windows: Array, counts: Any, long: str, predictor: Predictor) -> Array:
    """Return one result for each text of several windows; of length one where windows are."""
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
) -> pd.DataFrame:
    number = (partition_info or {}).get("number", 0)
    with naming(number):
        made = model._vectors(texts.tolist(), predictor) if len(texts) else None
    if made is None:
        made = predictor(np.zeros((1, 1), np.int64))[:0]
    return _frame(made, texts.index, model.labels)


def _frame(values: Array, index: Any, labels: list[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(values, index=index, columns=labels or None)


def _of_bag(texts: Any, model: TextModel, predictor: Predictor) -> list[Array]:
    texts = list(texts)
    return list(model._vectors(texts, predictor)) if texts else []


def _is(value: Any, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def load(
    folder: str | Path,
    task: Literal["embed", "classify"] = "embed",
    *,
    labels: Sequence[str] | None = None,
    threads: int | None = None,
    precision: str = "float32",
    long: str = "cut",
    overlap: int = 0,
) -> TextModel:
    """Load a folder of Hugging Face or sentence-transformers.

    Read are BERT, RoBERTa, XLM-R, DistilBERT, MPNet and ModernBERT.

    Nothing is fetched, and neither torch nor transformers is needed; ``tokenizers`` is, which the
    extra ``text`` brings.

    Parameters
    ----------
    folder : path
        With config.json, tokenizer.json and model.safetensors (or its shards, or
        pytorch_model.bin); of sentence-transformers also modules.json, of which pooling and
        normalisation are taken.
    task : "embed" or "classify"
        Vectors, or the scores (logits) of the folder's own classifier.
    labels : sequence of str, optional
        Of a new classifier, which is to be trained.
    threads, precision, long
        See `TextModel`.
    overlap : int
        Tokens that two windows of a long text share.

    Raises
    ------
    ModelFileError
        When a file is missing or damaged, or a setting is not known: it may change the vectors.
    MissingExtraError
        Without ``tokenizers``.

    Examples
    --------
    >>> model = load("all-MiniLM-L6-v2")  # doctest: +SKIP
    >>> model(["A text.", "Another one."]).shape  # doctest: +SKIP
    (2, 384)
    """
    path, pooling, unit = read_pooling(Path(folder))
    encoder, weights, config = read_encoder(path)
    names: list[str] = []
    if task == "classify":
        network, names = read_head(path, encoder, weights, config, labels)
    elif task == "embed":
        network = TextHead(encoder, pooling, unit)
    else:
        raise ModelFileError(f"load, task: expected embed or classify, found {task!r}")
    tokenizer = _tokenizer(path, encoder.longest, overlap)
    kind = config["model_type"]
    return TextModel(network.eval(), tokenizer, names, threads, precision, kind, long)


def _tokenizer(folder: Path, longest: int, overlap: int) -> Any:
    """Return the tokenizer of a folder, which cuts texts to the longest that counts."""
    try:
        from tokenizers import Tokenizer, normalizers
    except ImportError as error:
        raise MissingExtraError(
            "reading texts needs tokenizers; pip install 'daskdl[text]'"
        ) from error
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelFileError(
            f"{folder}: expected tokenizer.json, found none; transformers writes it: "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
    try:
        made = Tokenizer.from_file(str(path))
    except Exception as error:  # all that the library raises
        raise ModelFileError(f"{path}: not a tokenizer ({error}); fetch it again") from error
    limits = [longest]
    for name, key in (
        ("tokenizer_config.json", "model_max_length"),
        ("sentence_bert_config.json", "max_seq_length"),
    ):
        told = read_json(folder / name) if (folder / name).is_file() else {}
        if isinstance(told.get(key), (int, float)):
            limits.append(int(min(told[key], longest)))
        if told.get("do_lower_case") and name.startswith("sentence"):
            before = [made.normalizer] if made.normalizer is not None else []
            made.normalizer = normalizers.Sequence([normalizers.Lowercase(), *before])
    made.no_padding()
    least = min(limits) - made.num_special_tokens_to_add(False)
    if not 0 <= overlap < least:
        raise SettingsError(f"load, overlap: expected 0 to {least - 1} tokens, found {overlap}")
    made.enable_truncation(min(limits), stride=overlap)
    return made
