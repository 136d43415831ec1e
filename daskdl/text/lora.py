"""LoRA adapters of encoders: add, merge, and read and write them in peft's format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import ModelFileError, SettingsError
from daskdl.files import replacing
from daskdl.interop.guard import check_keys
from daskdl.interop.torch_weights import read
from daskdl.nn import Adapted, LoRA
from daskdl.tensor import Array
from daskdl.text.folder import BEFORE, LINEARS, PARTS, head_names, read_json
from daskdl.text.model import TextModel

#: BERT's names of the layers that ModernBERT's files join to one, in order.
FUSED = tuple(LINEARS[f"attention.{name}"] for name in ("query", "key", "value"))
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
#: Settings of peft that change no vector, or that follow from the weights in the file.
IGNORED = {
    "auto_mapping", "base_model_name_or_path", "exclude_modules", "inference_mode",
    "init_lora_weights", "layers_pattern", "layers_to_transform", "lora_dropout", "megatron_core",
    "modules_to_save", "peft_version", "qalora_group_size", "revision", "target_modules",
    "task_type", "eva_config", "corda_config", "lora_ga_config",
}  # fmt: skip
#: Settings that must be missing, false or empty.
FALSE = {
    "alpha_pattern", "ensure_weight_tying", "fan_in_fan_out", "loftq_config", "lora_bias",
    "rank_pattern", "use_dora", "use_qalora", "use_rslora",
}  # fmt: skip


def lora(
    model: TextModel,
    rank: int = 8,
    alpha: float = 16.0,
    targets: Sequence[str] = ("query", "value"),
    seed: int = 0,
) -> TextModel:
    """Return a model with adapters; only they and the layers after the encoder are trained.

    Parameters
    ----------
    model : TextModel
        The result uses its network without a copy.
    rank, alpha, targets, seed
        See :class:`daskdl.nn.Adapted`; targets' names end in query, key, value or output for the
        attention, and widen or narrow for the network.

    Examples
    --------
    >>> model = lora(load("bert", "classify", labels=["no", "yes"]))  # doctest: +SKIP
    >>> Trainer(model.network, CrossEntropyLoss(), AdamW(1e-3)).fit(texts)  # doctest: +SKIP
    """
    trained = ("layers",) if getattr(model.network, "layers", None) else ()
    return replace(model, network=Adapted(model.network, rank, alpha, targets, trained, seed))


def merged(model: TextModel) -> TextModel:
    """Return the model with its adapters merged into the weights; as fast as without adapters.

    Examples
    --------
    >>> merged(load_adapter(load("bert"), "adapter/"))(texts)  # doctest: +SKIP
    """
    return replace(model, network=_adapted(model).merge().eval())


def save_adapter(model: TextModel, folder: str | Path) -> None:
    """Write the adapters, and the layers after the encoder, in peft's format.

    Parameters
    ----------
    model : TextModel
        A model of :func:`lora` or :func:`load_adapter`.
    folder : path
        Created if missing. Each of the two files is replaced atomically.

    Examples
    --------
    >>> save_adapter(model, "adapter/")  # doctest: +SKIP
    """
    from safetensors.numpy import save

    network = _adapted(model)
    maps = _in_files(dict(network.adapters()), model.kind)
    scale = next(adapter.scale for _, adapter in network.adapters())
    rank = max(len(down) for down, _ in maps.values())
    inner = f"{model.kind.removeprefix('xlm-')}." if model.labels else ""
    inner = "model." if model.kind == "modernbert" and model.labels else inner
    weights, whole = {}, set[str]()
    for name, (down, up) in maps.items():
        more = rank - len(down)  # in files all have the same rank
        for part, array in (
            ("A", np.pad(down, ((0, more), (0, 0)))), ("B", np.pad(up, ((0, 0), (0, more)))),
        ):  # fmt: skip
            weights[f"base_model.model.{inner}{name}.lora_{part}.weight"] = array
    state = network.model.state_dict()
    for name, theirs in _head(model):
        whole.add(theirs.removeprefix(inner).split(".")[0])
        for part in ("weight", "bias"):
            if f"{name}.{part}" in state:
                weights[f"base_model.model.{theirs}.{part}"] = state[f"{name}.{part}"]
    config = {
        "peft_type": "LORA", "task_type": "SEQ_CLS" if model.labels else "FEATURE_EXTRACTION",
        "r": rank, "lora_alpha": scale * rank, "lora_dropout": 0.0,
        "bias": "none", "fan_in_fan_out": False, "inference_mode": True,
        "target_modules": sorted(maps), "modules_to_save": sorted(whole) or None,
    }  # fmt: skip
    path = Path(folder)
    for name, content in (
        (WEIGHTS, save(weights, {"format": "pt"})),
        (CONFIG, json.dumps(config, indent=2).encode()),
    ):
        with replacing(path / name) as temporary:
            temporary.write_bytes(content)


def load_adapter(model: TextModel, folder: str | Path) -> TextModel:
    """Return a model with the adapters of a folder in peft's format.

    Parameters
    ----------
    model : TextModel
        The base model of the adapters; the result uses its network without a copy.
    folder : path
        Has adapter_config.json and adapter_model.safetensors (or .bin).

    Raises
    ------
    ModelFileError
        When a file is missing or damaged, a setting is unknown, or a weight is of another model.

    Examples
    --------
    >>> model = load_adapter(load("bert", "classify"), "adapter/")  # doctest: +SKIP
    """
    path = Path(folder)
    config, where = read_json(path / CONFIG), f"{path / CONFIG}"
    check_keys(where, config, {"peft_type", "r", "lora_alpha", "bias", *FALSE}, IGNORED)
    wrong = [name for name in FALSE if config.get(name)]
    if config.get("init_lora_weights") not in (None, True, False, "gaussian", "eva", "orthogonal"):
        wrong.append(f"init_lora_weights {config['init_lora_weights']!r}, which changes the model")
    if wrong or config.get("peft_type") != "LORA" or config.get("bias", "none") != "none":
        raise ModelFileError(
            f"{where}: expected plain LoRA (peft_type LORA, bias none, and none of "
            f"{', '.join(sorted(FALSE))}), found {', '.join(wrong) or 'another kind'}; merge it by "
            "peft, and load the whole model"
        )
    file = path / WEIGHTS
    weights = read(file if file.is_file() else path / "adapter_model.bin")
    arrays, targets = {}, set()
    heads = {theirs: name for name, theirs in _head(model)}
    for key, array in weights.items():
        name, _, part = key.removeprefix("base_model.model.").rpartition(".")
        layer, _, map_ = name.rpartition(".lora_")
        if name in heads:
            arrays[f"model.{heads[name]}.{part}"] = array
            continue
        if not heads and name.startswith("pooler."):
            continue  # vectors do not need it
        ours = _ours(layer, model.kind)
        if part != "weight" or map_ not in ("A", "B") or not ours:
            raise ModelFileError(
                f"{file}: {key}: expected adapters of affine maps in blocks of a {model.kind} and "
                f"weights of its classifier; load the model as it was trained"
            )
        targets.update(ours)
        each = [array] * len(ours) if map_ == "A" else np.array_split(array, len(ours))
        for our_name, parameter in zip(ours, each, strict=True):
            arrays[f"model.{our_name}.{'down' if map_ == 'A' else 'up'}"] = parameter
    try:
        made = lora(model, int(config["r"]), float(config["lora_alpha"]), sorted(targets))
        network = made.network
        # Adapters often leave out the layers between encoder and last layer: keep the folder's.
        between = tuple(f"model.{name}." for name in [*heads.values()][:-1])
        wanted = {n for n, _ in network.named_parameters() if not n.startswith(between)}
        if wanted - arrays.keys():
            raise ModelFileError(f"no weights of {min(wanted - arrays.keys())}")
        state = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
        network.load_state_dict(state, strict=False)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: not the adapters of this model ({error})") from error
    return replace(made, network=made.network.eval())


def _adapted(model: TextModel) -> Adapted:
    if not isinstance(model.network, Adapted):
        raise SettingsError(
            f"expected a model with adapters, found {type(model.network).__name__}; lora(model) "
            "makes them"
        )
    return model.network


def _head(model: TextModel) -> Iterator[tuple[str, str]]:
    """Yield names of the layers after the encoder, here and in files."""
    if model.labels:
        network: Any = model.network
        network = network.model if isinstance(network, Adapted) else network
        weighted = [i for i, layer in enumerate(network.layers) if layer.state_dict()]
        names = head_names(model.kind, "tokens" if network.pooling == "none" else "classify")
        for i, theirs in zip(weighted, names, strict=True):
            yield f"layers.{i}", f"bert.{theirs}" if theirs.startswith("pooler") else theirs


def _in_files(adapters: Mapping[str, LoRA], kind: str) -> dict[str, tuple[Array, Array]]:
    """Return both matrices of each adapter by the name of its layer in files.

    ModernBERT has query, key and value in one layer. Their adapters become one: the first matrix
    has the rows of all, the second is block-diagonal.
    """
    names = {bert: theirs for theirs, bert in PARTS.get(kind, {}).items()}
    maps: dict[str, tuple[Array, Array]] = {}
    for our_name, adapter in adapters.items():
        _, _, number, part = our_name.split(".", 3)
        before = f"{BEFORE.get(kind, 'encoder.layer')}.{number}"
        down, up = adapter.down.data, adapter.up.data
        if kind == "modernbert" and LINEARS[part] in FUSED:
            name, place = f"{before}.attn.Wqkv", FUSED.index(LINEARS[part])
            others = maps.get(name, (down[:0], np.zeros((3 * len(up), 0), np.float32)))
            rows = np.zeros((3 * len(up), up.shape[1]), np.float32)
            rows[place * len(up) : (place + 1) * len(up)] = up
            maps[name] = np.concatenate([others[0], down]), np.concatenate([others[1], rows], 1)
        else:
            maps[f"{before}.{names.get(LINEARS[part], LINEARS[part])}"] = down, up
    return maps


def _ours(theirs: str, kind: str) -> list[str]:
    """Return our names of a layer in files; none if it is unknown."""
    before = re.escape(BEFORE.get(kind, "encoder.layer"))
    match = re.fullmatch(rf"(?:\w+\.)??{before}\.(\d+)\.(.+)", theirs)
    if match is None:
        return []
    part = PARTS.get(kind, {}).get(match[2], match[2])
    parts = FUSED if (kind, part) == ("modernbert", "attn.Wqkv") else (part,)
    ours = {bert: our_name for our_name, bert in LINEARS.items()}
    return [f"encoder.blocks.{match[1]}.{ours[part]}" for part in parts if part in ours]
