"""Read folders of Hugging Face: settings and weights of encoders, as modules.

Each setting of a folder is used, is known not to change results, or is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.guard import check_keys, existing
from daskdl.interop.torch_weights import read
from daskdl.nn import GELU, Linear, Module, Parameter, ReLU, Tanh
from daskdl.tensor import Array
from daskdl.text.attention import unshifted
from daskdl.text.encoder import TextEncoder, TextHead, classifier

#: Settings that change no vector: for training, for unused heads, and for other programs.
IGNORED = {
    "_name_or_path", "_attn_implementation_autoset", "architectures", "attention_dropout",
    "attention_probs_dropout_prob", "bos_token_id", "chunk_size_feed_forward",
    "classifier_dropout", "cls_token_id", "directionality", "dropout", "dtype", "eos_token_id",
    "finetuning_task", "gradient_checkpointing", "hidden_dropout_prob", "id2label",
    "initializer_range", "label2id", "model_type", "num_labels", "output_attentions",
    "output_hidden_states", "output_past", "pooler_fc_size", "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "problem_type", "qa_dropout",
    "return_dict", "sep_token_id", "seq_classif_dropout", "sinusoidal_pos_embds",
    "tie_word_embeddings", "tie_weights_", "tokenizer_class", "torch_dtype", "torchscript",
    "transformers_version", "use_cache", "mask_token_id", "unk_token_id", "mlp_dropout",
    "embedding_dropout", "decoder_bias", "deterministic_flash_attn", "initializer_cutoff_factor",
    "sparse_prediction", "sparse_pred_ignore_index", "reference_compile", "repad_logits_with_grad",
}  # fmt: skip
#: Settings that must have one of these values, or be missing.
FIXED = {
    "add_cross_attention": (False,),
    "attention_bias": (False,),
    "classifier_activation": ("gelu",),
    "classifier_bias": (False,),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "mlp_bias": (False,),
    "norm_bias": (False,),
    "position_embedding_type": ("absolute",),
    "pruned_heads": ({},),
    "relative_attention_num_buckets": (32,),
}
#: Names of the settings of each kind, and their defaults.
BERT = {
    "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "max_position_embeddings": 512, "hidden_act": "gelu",
    "layer_norm_eps": 1e-12, "pad_token_id": 0, "type_vocab_size": 2,
}  # fmt: skip
ROBERTA = BERT | {"vocab_size": 50265, "pad_token_id": 1}
DISTILBERT = {
    "vocab_size": 30522, "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072,
    "max_position_embeddings": 512, "activation": "gelu", "pad_token_id": 0,
}  # fmt: skip
MPNET = BERT | {"vocab_size": 30527, "pad_token_id": 1}
MODERNBERT = {
    "vocab_size": 50368, "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12,
    "intermediate_size": 1152, "max_position_embeddings": 8192, "hidden_activation": "gelu",
    "norm_eps": 1e-5, "local_attention": 128, "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "layer_types": None,
    "rope_parameters": None, "classifier_pooling": "cls", "pad_token_id": 50283,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "bert": BERT,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "distilbert": DISTILBERT,
    "mpnet": MPNET,
    "modernbert": MODERNBERT,
}
#: Kinds whose places begin after the padding's id, with RoBERTa's classifier.
AS_ROBERTA = ("roberta", "xlm-roberta", "mpnet")
#: Names of weights that vectors do not need.
UNUSED = r"(cls|lm_head|vocab_\w+|pooler|qa_outputs)\.|.*position_ids$"
#: Names of a block's linear layers here, and in BERT's files.
LINEARS = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "network.widen": "intermediate.dense",
    "network.narrow": "output.dense",
}
NORMS = {"norm_attention": "attention.output.LayerNorm", "norm_network": "output.LayerNorm"}
#: Names of a block's parts in files of other kinds, and BERT's names for them.
PARTS = {
    "distilbert": {
        "attention.q_lin": "attention.self.query",
        "attention.k_lin": "attention.self.key",
        "attention.v_lin": "attention.self.value",
        "attention.out_lin": "attention.output.dense",
        "sa_layer_norm": "attention.output.LayerNorm",
        "ffn.lin1": "intermediate.dense",
        "ffn.lin2": "output.dense",
        "output_layer_norm": "output.LayerNorm",
    },
    "mpnet": {
        "attention.attn.q": "attention.self.query",
        "attention.attn.k": "attention.self.key",
        "attention.attn.v": "attention.self.value",
        "attention.attn.o": "attention.output.dense",
        "attention.LayerNorm": "attention.output.LayerNorm",
    },
    "modernbert": {
        "attn.Wo": "attention.output.dense",
        "attn_norm": "attention.output.LayerNorm",
        "mlp.Wi": "intermediate.dense",
        "mlp.Wo": "output.dense",
        "mlp_norm": "output.LayerNorm",
    },
}
#: Other names of weights, in older files and ModernBERT's, and BERT's names for them.
RENAMED = {
    "LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias",
    "tok_embeddings": "word_embeddings", "embeddings.norm": "embeddings.LayerNorm",
}  # fmt: skip
BEFORE = {"distilbert": "transformer.layer", "modernbert": "layers"}


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON file of a folder; a ModelFileError if it is missing or no JSON object."""
    content = existing(path, "file of the folder").read_bytes()
    try:
        value = json.loads(content)
    except ValueError as error:
        raise ModelFileError(f"{path}: not a JSON file ({error}); fetch it again") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{path}: expected an object of JSON, found {type(value).__name__}")
    return value


def read_encoder(folder: Path) -> tuple[TextEncoder, dict[str, Array], dict[str, Any]]:
    """Return a folder's encoder, the weights that it does not use, and the settings.

    Raises ModelFileError when a file is missing or damaged, or the kind of model or a setting is
    unknown.
    """
    config = read_json(folder / "config.json")
    where, kind = f"{folder / 'config.json'}", config.get("model_type")
    if kind not in KINDS:
        raise ModelFileError(
            f"{where}: expected model_type {', '.join(KINDS)}, found {kind!r}; save the model as "
            "ONNX, and load that by daskdl.load"
        )
    check_keys(where, config, {*KINDS[kind], *FIXED}, IGNORED)
    for name, values in FIXED.items():
        if config.get(name) is not None and config[name] not in values:
            raise ModelFileError(
                f"{where}: {name}: expected {values[0]!r}, found {config[name]!r}; save the model "
                "as ONNX, and load that by daskdl.load"
            )
    made = KINDS[kind] | {k: v for k, v in config.items() if v is not None}
    words, width, layers, heads, hidden, places, activation = (made[name] for name in [*made][:7])
    known = ("gelu",) if kind == "modernbert" else ("gelu", "relu")
    if activation not in known:
        raise ModelFileError(
            f"{where}: expected the activation {' or '.join(known)}, found {activation!r}"
        )
    padding = 1 if kind == "mpnet" else made["pad_token_id"]  # MPNet ignores the setting
    first = padding + 1 if kind in AS_ROBERTA else 0
    types = made.get("type_vocab_size", 0) if kind == "bert" else 0
    weights = _weights(folder, kind)
    gates = 2 if kind == "modernbert" else 1
    # Check sizes before allocating memory for numbers that the file does not have.
    for name, shape in (
        ("embeddings.word_embeddings", (words, width)),
        ("embeddings.position_embeddings", (places, width)),
        (f"encoder.layer.{layers - 1}.intermediate.dense", (gates * hidden, width)),
    ):
        array = weights.get(f"{name}.weight")
        if array is None and (gates == 1 or "position" not in name):
            _taken(weights, f"{name}.weight", f"{folder}")
        if array is not None:
            _check(shape, array, f"{folder}")
    encoder = TextEncoder(
        words, width, layers, heads, hidden, places, first, activation,
        made.get("layer_norm_eps", made.get("norm_eps", 1e-12)),
        types,
        32 if kind == "mpnet" else 0,
        _rotary(made, where) if kind == "modernbert" else (),
    )  # fmt: skip
    _fill(encoder, weights, f"{folder}")
    return encoder, weights, config


def _rotary(config: Mapping[str, Any], where: str) -> list[tuple[float, int]]:
    """Return base and window of each block of a ModernBERT, from older or newer settings."""
    count, every = config["num_hidden_layers"], config["global_attn_every_n_layers"]
    types = config["layer_types"] or [
        "sliding_attention" if i % every else "full_attention" for i in range(count)
    ]
    bases = {
        name: (config["rope_parameters"] or {}).get(name) or {"rope_theta": config[older]}
        for name, older in (
            ("full_attention", "global_rope_theta"), ("sliding_attention", "local_rope_theta"),
        )
    }  # fmt: skip
    if (
        len(types) != count
        or set(types) - bases.keys()
        or any(base.get("rope_type", "default") != "default" for base in bases.values())
        or any(base.keys() - {"rope_type", "rope_theta"} for base in bases.values())
    ):
        raise ModelFileError(
            f"{where}: expected a layer_types of {' and '.join(bases)} for each of the {count} "
            f"layers and rope_type default, found {types} and {bases}; save the model as ONNX, and "
            "load that by daskdl.load"
        )
    window = config["local_attention"] // 2
    return [
        (float(bases[kind]["rope_theta"]), window if kind == "sliding_attention" else 0)
        for kind in types
    ]


def head_names(kind: str, task: str = "classify") -> list[str]:
    """Return the names in files of a classifier's layers with weights, in order."""
    if task == "tokens" and kind != "modernbert":
        return ["classifier"]
    if kind == "modernbert":
        return ["head.dense", "head.norm", "classifier"]
    between = {"bert": "pooler.dense", "distilbert": "pre_classifier"}.get(kind, "classifier.dense")
    return [between, "classifier.out_proj" if kind in AS_ROBERTA else "classifier"]


def read_head(
    folder: Path,
    encoder: TextEncoder,
    weights: dict[str, Array],
    config: Mapping[str, Any],
    labels: Sequence[str] | None = None,
    task: str = "classify",
) -> tuple[TextHead, list[str]]:
    """Return an encoder with its classifier, and the labels; given ``labels`` make a new one.

    ``task`` is to classify texts or tokens. Raises ModelFileError when the folder has no
    classifier.
    """
    features, kind = encoder.words.weight.shape[1], config["model_type"]
    names = head_names(kind, task)
    if labels is None and f"{names[-1]}.weight" not in weights:
        raise ModelFileError(
            f"{folder}: expected weights of a classifier ({names[-1]}.weight), found none; the "
            "task embed needs none, and labels=[...] makes a new one to train"
        )
    classes = len(weights[f"{names[-1]}.weight"] if labels is None else labels)
    if len(names) == 1:
        layers: list[Module] = [Linear(features, classes, seed=1)]
    elif kind == "modernbert":
        norm = unshifted(features, encoder.norm.eps)
        layers = classifier(features, classes, GELU(), norm, bias=False)
    else:
        layers = classifier(features, classes, ReLU() if kind == "distilbert" else Tanh())
    weighted = [layer for layer in layers if list(layer.parameters())]
    for name, layer in zip(names, weighted, strict=True):
        if labels is None or (name != names[-1] and f"{name}.weight" in weights):
            _put_all(layer, weights, name, str(folder))
    if labels is None:
        known = config.get("id2label") or {}
        labels = [str(known.get(str(i), f"LABEL_{i}")) for i in range(classes)]
    pooling = "mean" if config.get("classifier_pooling", "cls") == "mean" else "first"
    return TextHead(encoder, "none" if task == "tokens" else pooling, layers=layers), list(labels)


def _weights(folder: Path, kind: str) -> dict[str, Array]:
    """Return the weights by BERT's names, without their prefix."""
    names = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
             "pytorch_model.bin.index.json")  # fmt: skip
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        raise ModelFileError(f"{folder}: expected weights in {names[0]} or {names[2]}, found none")
    made = {}
    for name, array in read(path).items():
        renamed = re.sub(rf"^({kind.removeprefix('xlm-')}|model)\.", "", name)
        for theirs, ours in RENAMED.items():
            renamed = renamed.replace(theirs, ours)
        before = f"{BEFORE.get(kind, 'encoder.layer')}."
        if renamed.startswith(before):
            block, _, part = renamed.removeprefix(before).partition(".")
            part, _, end = part.rpartition(".")
            renamed = f"encoder.layer.{block}.{PARTS.get(kind, {}).get(part, part)}.{end}"
        if renamed.endswith("attn.Wqkv.weight"):
            for part, third in zip(("query", "key", "value"), np.split(array, 3), strict=True):
                made[renamed.replace("attn.Wqkv", f"attention.self.{part}")] = third
            continue
        made[renamed] = array
    return made


def _fill(encoder: TextEncoder, weights: dict[str, Array], where: str) -> None:
    """Copy weights into an encoder, and remove them from the dict."""
    _put(encoder.words.weight, _taken(weights, "embeddings.word_embeddings.weight", where), where)
    if encoder.places is not None:
        places = _taken(weights, "embeddings.position_embeddings.weight", where)
        if encoder.types is not None:
            _put_all(encoder.types, weights, "embeddings.token_type_embeddings", where)
        types = weights.pop("embeddings.token_type_embeddings.weight", None)
        if types is not None:  # only one type: add it to the places
            places = places + types[0]
        _put(encoder.places.weight, places, where)
    _put_all(encoder.norm, weights, "embeddings.LayerNorm", where)
    for number, block in enumerate(encoder.blocks):
        inside: dict[str, Any] = dict(block.modules())
        for our_name, part in (LINEARS | NORMS).items():
            _put_all(inside[our_name], weights, f"encoder.layer.{number}.{part}", where)
        if number == 0 and "attention.table" in inside:
            _put_all(inside["attention.table"], weights, "encoder.relative_attention_bias", where)
    if encoder.last is not None:
        _put_all(encoder.last, weights, "final_norm", where)
    unknown = [name for name in weights if name.startswith(("encoder.", "embeddings."))]
    unknown = [name for name in unknown if not re.match(UNUSED, name)]
    if unknown:
        raise ModelFileError(
            f"{where}: {unknown[0]}: a weight that this reader does not know, and it may change "
            "the vectors; save the model as ONNX, and load that by daskdl.load"
        )


def _taken(weights: dict[str, Array], name: str, where: str) -> Array:
    try:
        return np.asarray(weights.pop(name), np.float32)
    except KeyError:
        raise ModelFileError(f"{where}: expected the weight {name}, found none") from None


def _check(shape: tuple[int, ...], array: Array, where: str) -> None:
    if shape != array.shape:
        raise ModelFileError(
            f"{where}: expected weights of shape {shape} by config.json, found {array.shape}"
            "; take both files of one model"
        )


def _put(tensor: Any, array: Array, where: str) -> None:
    _check(tensor.shape, array, where)
    tensor.data[...] = array


def _put_all(layer: Module, weights: dict[str, Array], name: str, where: str) -> None:
    for part, tensor in vars(layer).items():
        if isinstance(tensor, Parameter):
            _put(tensor, _taken(weights, f"{name}.{part}", where), where)
