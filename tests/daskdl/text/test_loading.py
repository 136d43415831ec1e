"""Folders of Hugging Face, sentence-transformers and model2vec give these libraries' results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskdl import text
from daskdl.errors import DataError, ModelFileError
from tests.daskdl.text.folders import (
    CLASSIFIER,
    LONG,
    OF_TOKENS,
    TEXTS,
    WORDS,
    by_torch,
    peer,
    write_folder,
    write_tokenizer,
)

pytest.importorskip("tokenizers")

from tokenizers import Tokenizer, normalizers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "task"), [("Model", "embed"), (CLASSIFIER, "classify"), (OF_TOKENS, "tokens")]
)
@pytest.mark.parametrize(
    ("kind", "longest"), [("bert", 12), ("roberta", 11), ("xlm-roberta", 11), ("distilbert", 12),
                          ("mpnet", 78), ("modernbert", 80)],
)  # fmt: skip
def test_vectors_and_scores_are_those_of_transformers(
    kind: str, longest: int, head: str, task: str, tmp_path: Path
) -> None:
    net = peer(kind, tmp_path, head)
    model = text.load(tmp_path, task)
    texts = [*TEXTS, LONG]
    numbers = np.concatenate(model(texts)) if task == "tokens" else model(texts)
    # In float64, since PyTorch's float32 sums differ by as much between processors.
    expected = by_torch(net.double(), longest, head, texts)
    np.testing.assert_allclose(numbers, expected, atol=1e-5)
    assert task == "embed" or model.labels == ["LABEL_0", "LABEL_1"]


@pytest.mark.slow
def test_pairs_are_scored_as_by_a_cross_encoder(tmp_path: Path) -> None:
    import dask.dataframe as dd
    import pandas as pd

    net = peer("bert", tmp_path, CLASSIFIER, num_labels=1)
    import torch

    model, others = text.load(tmp_path, "classify"), TEXTS[:3]
    expected = []
    for one in others:
        first, second = ([WORDS.index(word) for word in part.split()] for part in ("the sea", one))
        ids, types = [2, *first, 3, *second, 3], [0] * (len(first) + 2) + [1] * (len(second) + 1)
        with torch.inference_mode():
            result = net(torch.tensor([ids]), token_type_ids=torch.tensor([types]))
        expected.append(result.logits[0, 0].item())
    order, scores = model.rank("the sea", others)
    np.testing.assert_array_equal(order, np.argsort(expected)[::-1])
    np.testing.assert_allclose(scores, np.array(expected)[order], atol=1e-5)
    frame = pd.DataFrame({"query": "the sea", "text": others}, index=[7, 8, 9])
    predicted = model(dd.from_pandas(frame, npartitions=2)).compute(scheduler="threads")
    assert predicted.index.tolist() == [7, 8, 9]
    np.testing.assert_array_equal(predicted.to_numpy()[order, 0], scores)
    with pytest.raises(DataError, match="text 0: expected a str or a pair of them, found"):
        model([("a", "b", "c")])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "weights", "static"])
def test_tables_give_the_vectors_of_model2vec(kind: str, tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    rng, texts = np.random.default_rng(0), [*TEXTS, "rain xyz a", "xyz", LONG]
    table = rng.normal(size=(len(WORDS), 8)).astype(np.float32)
    if kind == "static":
        modules = pytest.importorskip("sentence_transformers.models")
        sentences = pytest.importorskip("sentence_transformers")
        static = modules.StaticEmbedding(tokenizer, embedding_weights=table)
        peer = sentences.SentenceTransformer(modules=[static, modules.Normalize()], device="cpu")
        peer.save(str(tmp_path / "model"))
        texts = texts[:-1]
    else:
        model2vec = pytest.importorskip("model2vec")
        settings: dict[str, Any] = {"normalize": True, "max_length": 20}
        if kind == "weights":
            rows = np.arange(len(WORDS)) % 5
            settings = {"weights": rng.random(len(WORDS)), "token_mapping": rows}
            table = table[:5]
        peer = model2vec.StaticModel(table, tokenizer, **settings)
        peer.save_pretrained(tmp_path / "model")
    model = text.load(tmp_path / "model")
    np.testing.assert_allclose(model(texts), peer.encode(texts), atol=1e-6)
    np.testing.assert_array_equal(np.stack([model(one) for one in texts]), model(texts))


def test_weights_may_lie_in_shards_or_in_a_file_of_pytorch(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    expected, weights = text.load(folder)(TEXTS), load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    shards = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(weights)}
    for file in set(shards.values()):
        save_file({n: weights[n] for n in weights if shards[n] == file}, folder / file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    np.testing.assert_array_equal(text.load(folder)(TEXTS), expected)
    index.unlink()
    torch = pytest.importorskip("torch")
    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    torch.save(tensors, folder / "pytorch_model.bin")
    np.testing.assert_array_equal(text.load(folder)(TEXTS), expected)


def test_folders_are_read_from_stores_and_the_hubs_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    store.put(f"{folder}/", "/models/small/", recursive=True)
    expected = text.load(folder)(TEXTS)
    np.testing.assert_array_equal(text.load("memory://models/small")(TEXTS), expected)
    with pytest.raises(ModelFileError, match=r"memory://models/other: .* no such folder"):
        text.load("memory://models/other")
    constants = pytest.importorskip("huggingface_hub.constants")
    cache = folder.parent / "hub"
    snapshot = cache / "models--some--small" / "snapshots" / ("0" * 40)
    shutil.copytree(folder, snapshot)
    (cache / "models--some--small" / "refs").mkdir()
    (cache / "models--some--small" / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    np.testing.assert_array_equal(text.load("hf://some/small")(TEXTS), expected)
    with pytest.raises(ModelFileError, match="hf://some/other: cannot be fetched"):
        text.load("hf://some/other")


def test_modules_of_sentence_transformers_are_followed(folder: Path, tmp_path: Path) -> None:
    whole = tmp_path / "sentence"
    folder.rename(tmp_path / "moved")
    whole.mkdir()
    (tmp_path / "moved").rename(whole / "0_Transformer")
    kinds = [("0_Transformer", "Transformer"), ("1_Pooling", "Pooling"), ("2", "Normalize")]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    (whole / "modules.json").write_text(json.dumps(modules))
    (whole / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_cls_token": True}
    (whole / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    vectors = text.load(whole)(TEXTS)
    np.testing.assert_allclose((vectors**2).sum(1), 1, rtol=1e-5)
    words = text.load(whole / "0_Transformer").network.encoder
    first = np.stack([words.predict(np.array([[2, *ids, 3]]))[0, 0] for ids in ([6], [5, 11])])
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    np.testing.assert_allclose(text.load(whole)(["rain", "a sea"]), first, rtol=1e-5, atol=1e-6)
    pooling |= {"pooling_mode_lasttoken": True}
    (whole / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    with pytest.raises(ModelFileError, match="pooling_mode_cls_token, pooling_mode_lasttoken"):
        text.load(whole)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model_type": "gpt2"}, "expected model_type bert, roberta"),
        ({"rope_theta": 1e4}, "rope_theta: not known to this reader, and it may change"),
        ({"position_embedding_type": "relative_key"}, "expected 'absolute', found 'relative_key'"),
        ({"hidden_act": "gelu_new"}, "expected the activation gelu or relu, found 'gelu_new'"),
        ({"model_type": "modernbert", "hidden_activation": "relu"}, "activation gelu, found 're"),
        ({"intermediate_size": 32}, r"expected weights of shape \(32, 16\) by config.json"),
        ({"vocab_size": 10**11}, r"expected weights of shape \(100000000000, 16\) by config.json"),
        ({"num_hidden_layers": 10**9}, "expected the weight encoder.layer.999999999.intermediate"),
        ({"num_hidden_layers": 1}, "encoder.layer.1.*: a weight that this reader does not know"),
    ],
)
def test_settings_that_change_numbers_are_refused(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelFileError, match=words):
        text.load(write_folder(tmp_path / "model", **settings))


def test_settings_beside_the_tokenizer_are_followed(folder: Path) -> None:
    made = Tokenizer.from_file(str(folder / "tokenizer.json"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.add_special_tokens(["[SEP]"])
    made.save(str(folder / "tokenizer.json"))
    settings = {"truncation_side": "left", "split_special_tokens": True, "do_lower_case": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "sentence_roberta_config.json").write_text('{"max_seq_length": 6}')
    ids = [one.ids for one in text.load(folder).tokenizer.encode_batch(["RAIN [SEP]", TEXTS[3]])]
    assert ids == [[2, 1, 1, 1, 1, 3], [2, 10, 4, 11, 12, 3]]


def test_missing_texts_and_files_are_named(folder: Path) -> None:
    for wrong in (None, "\ud800 of JSON", ("a", "\ud800")):
        with pytest.raises(DataError, match="text 1: expected a str or a pair of them, found"):
            text.load(folder)(["a", wrong])
    with pytest.raises(ModelFileError, match="expected weights of a classifier"):
        text.load(folder, "classify")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelFileError, match=r"expected tokenizer.json, found none"):
        text.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"expected weights in model.safetensors or"):
        text.load(folder)
