"""Pooling of words' vectors in sentence-transformers: the modules that a folder lists."""

from __future__ import annotations

import json
from pathlib import Path

from daskdl.errors import ModelFileError
from daskdl.interop.guard import check_keys
from daskdl.text.folder import read_json

#: Supported poolings by older and newer names, and our names.
MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_max_tokens": "max",
}
NAMED = dict(zip(("mean", "cls", "max"), MODES, strict=True))
OTHER = {
    "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens",
    "pooling_mode_lasttoken",
}  # fmt: skip


def read_pooling(folder: Path) -> tuple[Path, str, bool]:
    """Return the folder of the encoder, the pooling, and whether vectors have a length of one.

    Without a list of modules they are the folder itself and "mean"; static vectors have the pooling
    "table". Raises ModelFileError for an unsupported module or pooling.
    """
    path = folder / "modules.json"
    if not path.is_file():
        config = folder / "config.json"
        table = config.is_file() and read_json(config).get("model_type") == "model2vec"
        return folder, "table" if table else "mean", False
    encoder, pooling, unit = folder, "", False
    for module in _listed(path):
        kind = str(module.get("type", "")).rpartition(".")[2]
        place = folder / str(module.get("path", ""))
        if kind == "Transformer" and not pooling:
            encoder = place
        elif kind == "Pooling" and not pooling:
            pooling = _mode(place / "config.json")
        elif kind == "StaticEmbedding" and not pooling:
            encoder, pooling = place, "table"
        elif kind == "Normalize" and pooling:
            unit = True
        else:
            raise ModelFileError(
                f"{path}: expected Transformer and Pooling, or StaticEmbedding, and Normalize, "
                f"found {kind!r}; take its encoder alone, or save it as ONNX"
            )
    if not pooling:
        raise ModelFileError(f"{path}: expected a Pooling, found none")
    return encoder, pooling, unit


def _listed(path: Path) -> list[dict[str, object]]:
    try:
        value = json.loads(path.read_bytes())
        return sorted((dict(module) for module in value), key=lambda module: module["idx"])
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"{path}: not a list of modules ({error}); fetch it again") from error


def _mode(path: Path) -> str:
    config = read_json(path)
    ignored = {"word_embedding_dimension", "embedding_dimension"}
    check_keys(str(path), config, {*MODES, *OTHER, "pooling_mode", "include_prompt"}, ignored)
    if config.get("include_prompt") is False:
        raise ModelFileError(f"{path}: expected include_prompt true, found false; that is not read")
    chosen = [name for name in (*MODES, *OTHER) if config.get(name)]
    named = config.get("pooling_mode")
    if named is not None and not chosen:
        chosen = [NAMED.get(str(named), str(named))]
    if len(chosen) != 1 or chosen[0] not in MODES:
        raise ModelFileError(
            f"{path}: expected one pooling of {', '.join(MODES)}, found "
            f"{', '.join(chosen) or 'none'}"
        )
    return MODES[chosen[0]]
