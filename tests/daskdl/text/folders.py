"""Small folders of encoders with random weights, and the results of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "a", "rain", "falls", "on", "hills", "and"]
WORDS += ["sea", "today"]
TEXTS = ["the rain falls", "a sea", "rain", "the rain falls on the hills and the sea today", ""]
LONG = " ".join(TEXTS * 4)
SMALL = {
    "bert": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
             "intermediate_size": 24, "max_position_embeddings": 12},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24,
                   "max_position_embeddings": 12},
}  # fmt: skip
SMALL["roberta"] = SMALL["xlm-roberta"] = SMALL["bert"] | {"type_vocab_size": 1, "pad_token_id": 0}
SMALL["mpnet"] = SMALL["roberta"] | {"max_position_embeddings": 80}
SMALL["modernbert"] = SMALL["bert"] | {
    "num_hidden_layers": 4, "max_position_embeddings": 80, "local_attention": 4,
    "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3,
}  # fmt: skip
CLASSIFIER, OF_TOKENS = "ForSequenceClassification", "ForTokenClassification"
NAMES = {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert",
         "mpnet": "MPNet", "modernbert": "ModernBert", "xlm-roberta": "XLMRoberta"}  # fmt: skip


def write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def peer(kind: str, folder: Path, head: str = "Model", **settings: Any) -> Any:
    """Return transformers' model of random weights, and write its folder."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, f"{NAMES[kind]}Config")(
        vocab_size=len(WORDS), initializer_range=0.5, **SMALL[kind], **settings
    )
    net = getattr(transformers, f"{NAMES[kind]}{head}")(config).eval()
    for name, weight in net.named_parameters():
        if name.endswith(("relative_attention_bias.weight", "norm.weight")):
            torch.nn.init.normal_(weight, 1.0, 0.5)
    net.save_pretrained(folder)
    write_tokenizer(folder)
    return net


def by_torch(net: Any, longest: int, head: str, texts: list[str] = TEXTS) -> np.ndarray:
    """Return torch's mean vector or scores of each text alone."""
    import torch

    rows = []
    for text in texts:
        ids = [2, *(WORDS.index(word) for word in text.split()[: longest - 2]), 3]
        with torch.inference_mode():
            result = net(torch.tensor([ids]))
        rows.append(result.last_hidden_state[0].mean(0) if head == "Model" else result.logits[0])
    numbers = [row.numpy() for row in rows]
    return np.concatenate(numbers) if head == OF_TOKENS else np.stack(numbers)


def write_folder(folder: Path, seed: int = 0, **settings: Any) -> Path:
    """Write a folder of BERT's kind with random weights, without transformers."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "bert", "vocab_size": len(WORDS), **SMALL["bert"], **settings}
    (folder / "config.json").write_text(json.dumps(config))
    rng, weights = np.random.default_rng(seed), {}

    def put(name: str, *shape: int, bias: bool = True) -> None:
        weights[f"{name}.weight"] = rng.normal(size=shape).astype(np.float32)
        if bias:
            weights[f"{name}.bias"] = rng.normal(size=shape[0]).astype(np.float32)

    for name, rows in (("word", len(WORDS)), ("position", 12), ("token_type", 2)):
        put(f"embeddings.{name}_embeddings", rows, 16, bias=False)
    put("embeddings.LayerNorm", 16)
    for i in range(2):
        layer = f"encoder.layer.{i}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            put(f"{layer}.attention.{part}", 16, 16)
        put(f"{layer}.attention.output.LayerNorm", 16)
        put(f"{layer}.intermediate.dense", 24, 16)
        put(f"{layer}.output.dense", 16, 24)
        put(f"{layer}.output.LayerNorm", 16)
    save_file(weights, folder / "model.safetensors")
    write_tokenizer(folder)
    return folder
