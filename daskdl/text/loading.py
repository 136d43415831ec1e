"""Load a folder of Hugging Face, sentence-transformers or model2vec as a `TextModel`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import numpy as np

from daskdl.errors import ModelFileError, SettingsError, needed
from daskdl.interop.guard import check_keys, reading
from daskdl.interop.torch_weights import read
from daskdl.nn import EmbeddingBag
from daskdl.nn.core.modelfile import store_of
from daskdl.text.encoder import TextHead
from daskdl.text.folder import read_encoder, read_head, read_json
from daskdl.text.model import TextModel
from daskdl.text.pooling import read_pooling

#: Files to fetch from a URL, and further ones if these have no weights.
WANTED, BY_PYTORCH = ("*.json", "*.safetensors"), ("*pytorch_model*.bin",)
#: Settings of model2vec's folders that change no vector.
IGNORED = {
    "apply_pca", "apply_zipf", "architectures", "embedding_dtype", "hidden_dim", "model_type",
    "pooling", "seq_length", "sif_coefficient", "tokenizer_name", "vocabulary_quantization",
}  # fmt: skip
#: Parts of tokenizers, their settings, and keys of tokenizer_config.json that go before them.
OVERRIDDEN = (
    ("normalizer", "lowercase", "do_lower_case"), ("normalizer", "strip_accents", "strip_accents"),
    ("normalizer", "handle_chinese_chars", "tokenize_chinese_chars"),
    ("pre_tokenizer", "add_prefix_space", "add_prefix_space"),
)  # fmt: skip
AS_IS = ("PreTrainedTokenizerFast", "TokenizersBackend")


def load(
    folder: str | Path,
    task: Literal["embed", "classify", "tokens"] = "embed",
    *,
    labels: Sequence[str] | None = None,
    threads: int | None = None,
    precision: str = "float32",
    long: str = "cut",
    overlap: int = 0,
    prompt: str | None = None,
) -> TextModel:
    """Load a folder of Hugging Face, sentence-transformers or model2vec.

    It reads BERT, RoBERTa, XLM-R, DistilBERT, MPNet and ModernBERT, and tables of static vectors.

    This needs ``tokenizers``, which the extra ``text`` installs, but neither torch nor
    transformers. No code of a folder is run.

    Parameters
    ----------
    folder : path or URL
        Has config.json, tokenizer.json and model.safetensors (or its shards, or
        pytorch_model.bin); sentence-transformers also modules.json, with pooling and normalisation.
        A URL is in a store of fsspec, or ``hf://organisation/name``, which huggingface_hub fetches
        and caches; for a path nothing is fetched.
    task : "embed", "classify" or "tokens"
        Return vectors, or the scores (logits) of the folder's classifier of texts or pairs of
        texts, or of tokens.
    labels : sequence of str, optional
        Labels of a new classifier, to be trained.
    threads, precision, long
        See `TextModel`.
    overlap : int
        Number of tokens that adjacent windows of a long text share.
    prompt : str, optional
        Name of a prompt in config_sentence_transformers.json, such as "query", to insert before
        each text; by default the folder's default prompt, if any.

    Raises
    ------
    ModelFileError
        When a file is missing or damaged, or an unknown setting may change the vectors.
    SettingsError
        When the task or prompt is unknown.
    MissingExtraError
        Without ``tokenizers``, or a package for the URL.

    Examples
    --------
    >>> model = load("all-MiniLM-L6-v2")  # doctest: +SKIP
    >>> model(["A text.", "Another one."]).shape  # doctest: +SKIP
    (2, 384)
    """
    if task not in ("embed", "classify", "tokens"):
        raise SettingsError(f"load, task: expected embed, classify or tokens, found {task!r}")
    if task == "tokens" and long != "cut":
        raise SettingsError(f"load, long: expected cut for the task tokens, found {long!r}")
    with _on_disk(str(folder)) as path:
        place, pooling, unit = read_pooling(path)
        before, names, second = _prompt(path, prompt), list[str](), 0
        if pooling == "table":
            if task != "embed":
                raise SettingsError(f"{path}: expected the task embed for a table, found {task}")
            network, tokenizer, kind = _table(place, unit, overlap)
        else:
            encoder, weights, config = read_encoder(place)
            tokenizer, kind = _tokenizer(place, encoder.longest, overlap), config["model_type"]
            second = 0 if encoder.types is None else encoder.words.rows
            network = TextHead(encoder, pooling, unit)
            if task != "embed":
                network, names = read_head(place, encoder, weights, config, labels, task)
    return TextModel(
        network.eval(), tokenizer, names, threads, precision, kind, long, before, second
    )


@contextmanager
def _on_disk(folder: str) -> Iterator[Path]:
    """Yield a local folder with the files of a folder or URL."""
    scheme, _, name = folder.partition("://")
    if not name:
        yield Path(folder)
    elif scheme == "hf":
        yield _from_hub(name)
    else:
        files, root = store_of(folder)
        with tempfile.TemporaryDirectory(prefix="daskdl-") as temporary:
            try:
                parts = [path.removeprefix(root).lstrip("/") for path in files.find(root)]
                for part in _wanted(parts):
                    copy = Path(temporary, part)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    files.get_file(f"{root.rstrip('/')}/{part}", str(copy))
            except OSError as error:
                raise ModelFileError(f"{folder}: cannot be read ({error})") from error
            if not parts:
                raise ModelFileError(f"{folder}: there is no such folder; see the bucket and name")
            yield Path(temporary)


def _from_hub(name: str) -> Path:
    """Return the folder of a model in huggingface_hub's cache, after a download if needed."""
    with needed(f"hf://{name}: pip install huggingface_hub"):
        from huggingface_hub import snapshot_download
    for patterns in (WANTED, BY_PYTORCH):
        try:
            path = Path(snapshot_download(name, allow_patterns=list(patterns)))
        except Exception as error:  # the library and its connections raise many kinds
            raise ModelFileError(
                f"hf://{name}: cannot be fetched ({str(error).splitlines()[0]}); see the name, or "
                "fetch it where there is a net and give the folder"
            ) from error
        if _wanted([str(file) for file in path.rglob("*.safetensors")]):
            break
    return path


def _wanted(paths: Sequence[str]) -> list[str]:
    """Return the files to read from a folder; PyTorch's only if there are no safetensors."""
    chosen = [path for path in paths if any(fnmatch(path, pattern) for pattern in WANTED)]
    if any(path.endswith(".safetensors") for path in chosen):
        return chosen
    return chosen + [path for path in paths if any(fnmatch(path, one) for one in BY_PYTORCH)]


def _table(folder: Path, unit: bool, overlap: int) -> tuple[TextHead, Any, str]:
    """Return the network of static vectors, its tokenizer and its kind.

    The network is the mean of the rows of a text's tokens; model2vec leaves out unknown tokens,
    StaticEmbedding of sentence-transformers includes them.
    """
    path = folder / "config.json"
    config = read_json(path) if path.is_file() else {}
    weights, unknown = read(folder / "model.safetensors"), None
    if "embeddings" in weights:
        check_keys(str(path), config, {"normalize", "max_length"}, IGNORED)
        tokenizer = _tokenizer(folder, config.get("max_length", 512) or 0, overlap, bare=True)
        settings = json.loads(tokenizer.to_str())["model"]
        named = settings.get("unk_token")  # Unigram tokenizers have unk_id instead
        unknown = settings.get("unk_id") if named is None else tokenizer.token_to_id(named)
        kind, unit = "model2vec", bool(config.get("normalize"))
    else:
        tokenizer, kind = _tokenizer(folder, 0, 0, bare=True), "static"
    name = "embeddings" if kind == "model2vec" else "embedding.weight"
    with reading(str(folder), "weights of a table"):
        table = np.asarray(weights[name], np.float32)
        if "mapping" in weights:
            table = table[weights["mapping"]]
        if "weights" in weights:
            table = table * weights["weights"].astype(np.float32)[:, None]
        rows, features = table.shape
        bag = EmbeddingBag(rows, features, padding_index=unknown)
    bag.weight.data[...] = table
    return TextHead(bag, "none", unit), tokenizer, kind


def _prompt(folder: Path, name: str | None) -> str:
    """Return the text of a prompt, by its name or the folder's default; "" for none."""
    path = folder / "config_sentence_transformers.json"
    config = read_json(path) if path.is_file() else {}
    prompts, name = config.get("prompts") or {}, name or config.get("default_prompt_name")
    if name is not None and name not in prompts:
        raise SettingsError(
            f"load, prompt: expected one of {[*prompts]} as {path.name} of the folder has them, "
            f"found {name!r}"
        )
    return str(prompts.get(name, ""))


def _tokenizer(folder: Path, longest: int, overlap: int, bare: bool = False) -> Any:
    """Return the tokenizer of a folder; it cuts texts to ``longest`` tokens at most, 0 for no cut.

    A ``bare`` one adds no special tokens.
    """
    with needed("reading texts needs tokenizers; pip install 'daskdl[text]'"):
        from tokenizers import Tokenizer, normalizers, processors
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelFileError(
            f"{folder}: expected tokenizer.json, found none; transformers writes it: "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
    try:
        made = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise ModelFileError(f"{path}: not a tokenizer ({error}); fetch it again") from error
    made.no_padding()
    if bare:
        made.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    limits, side = [longest], (made.truncation or {}).get("direction", "right")
    files = [*folder.glob("tokenizer_config.json"), *folder.glob("sentence_*_config.json")]
    for file in [] if bare else files:
        config = read_json(file)
        if file.name == "tokenizer_config.json":
            side = config.get("truncation_side") or side
            made.encode_special_tokens = bool(config.get("split_special_tokens"))
            for part, name, theirs in OVERRIDDEN:
                value = getattr(made, part) if config.get("tokenizer_class") not in AS_IS else None
                if theirs in config and hasattr(value, name):
                    setattr(value, name, config[theirs])
                    setattr(made, part, value)
        elif config.get("do_lower_case"):
            before = [made.normalizer] if made.normalizer is not None else []
            made.normalizer = normalizers.Sequence([normalizers.Lowercase(), *before])
        length = config.get("model_max_length", config.get("max_seq_length"))
        limits += [int(min(length, longest))] if isinstance(length, (int, float)) else []
    if not longest:
        made.no_truncation()
        return made
    least = min(limits) - made.num_special_tokens_to_add(False)
    if not 0 <= overlap < least:
        raise SettingsError(f"load, overlap: expected 0 to {least - 1} tokens, found {overlap}")
    made.enable_truncation(min(limits), stride=overlap, direction=side)
    return made
