"""Folders of Hugging Face beside transformers, and the same vector in any company."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

from daskdl import text
from daskdl.errors import DataError, ModelFileError, SettingsError
from daskdl.nn import load, save

pytest.importorskip("tokenizers")

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
SMALL["roberta"] = SMALL["bert"] | {"type_vocab_size": 1, "pad_token_id": 0}
SMALL["mpnet"] = SMALL["roberta"] | {"max_position_embeddings": 80}
SMALL["modernbert"] = SMALL["bert"] | {
    "num_hidden_layers": 4, "max_position_embeddings": 80, "local_attention": 4,
    "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3,
}  # fmt: skip
CLASSIFIER = "ForSequenceClassification"
NAMES = {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert",
         "mpnet": "MPNet", "modernbert": "ModernBert"}  # fmt: skip


def write_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.save(str(folder / "tokenizer.json"))


def peer(kind: str, folder: Path, head: str = "Model") -> Any:
    """Return transformers' model of random weights, and write its folder."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, f"{NAMES[kind]}Config")(
        vocab_size=len(WORDS), initializer_range=0.5, **SMALL[kind]
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
    for one in texts:
        ids = [2, *(WORDS.index(word) for word in one.split()[: longest - 2]), 3]
        with torch.inference_mode():
            result = net(torch.tensor([ids]))
        rows.append(result.last_hidden_state[0].mean(0) if head == "Model" else result.logits[0])
    return np.stack([row.numpy() for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize(("head", "task"), [("Model", "embed"), (CLASSIFIER, "classify")])
@pytest.mark.parametrize(
    ("kind", "longest"),
    [("bert", 12), ("roberta", 11), ("distilbert", 12), ("mpnet", 78), ("modernbert", 80)],
)
def test_vectors_and_scores_are_those_of_transformers(
    kind: str, longest: int, head: str, task: str, tmp_path: Path
) -> None:
    net = peer(kind, tmp_path, head)
    model = text.load(tmp_path, task)
    texts = [*TEXTS, LONG]
    np.testing.assert_allclose(model(texts), by_torch(net, longest, head, texts), atol=2e-5)
    assert task == "embed" or model.labels == ["LABEL_0", "LABEL_1"]


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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "model")


def test_a_text_has_one_vector_in_any_company(folder: Path) -> None:
    model = text.load(folder)
    many = [TEXTS[i % len(TEXTS)] for i in range(40)]
    together = model(many)
    for i in range(len(TEXTS)):
        np.testing.assert_array_equal(together[i :: len(TEXTS)], model(TEXTS[i])[None].repeat(8, 0))
    np.testing.assert_array_equal(text.load(folder, threads=2)(many), together)
    assert model([]).shape == (0, 16)


@pytest.mark.parametrize("options", [{"relative": 32}, {"rotary": [(1e4, 0), (1e3, 2)]}])
def test_so_it_has_by_the_blocks_of_other_kinds(options: dict[str, Any], tmp_path: Path) -> None:
    encoder = text.TextEncoder(len(WORDS), 16, 2, 2, 24, places=80, seed=0, **options)
    save(text.TextHead(encoder), tmp_path / "head.safetensors")
    network = load(tmp_path / "head.safetensors").eval()
    model = text.TextModel(network, text.load(write_folder(tmp_path / "any")).tokenizer)
    many = [*TEXTS, LONG] * 3
    together = replace(model, threads=2)(many)
    for i in range(6):
        np.testing.assert_array_equal(together[i::6], model(many[i])[None].repeat(3, 0))
    assert len(np.unique(together[:, 0])) == 6


def test_long_texts_are_cut_and_told_or_split(folder: Path, caplog) -> None:
    words = [WORDS[4 + i % 9] for i in range(24)]
    texts = ["rain", " ".join(words), "a sea"]
    cut = text.load(folder)(texts)
    assert "1 of 3 texts have more than 12 tokens and were cut" in caplog.text
    windows = [" ".join(words[a : a + 10]) for a in (0, 7, 14)]  # of 12 tokens with both ends
    alone = text.load(folder)(windows)
    np.testing.assert_array_equal(cut[1], alone[0])
    for long, function in (("mean", np.mean), ("max", np.max)):
        model = text.load(folder, long=long, overlap=3)
        np.testing.assert_allclose(model(texts)[1], function(alone, 0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(model(texts)[[0, 2]], cut[[0, 2]])
        unit = replace(model, network=text.TextHead(model.network.encoder, unit=True))
        assert np.linalg.norm(unit(texts), axis=1) == pytest.approx([1, 1, 1], rel=1e-6)
    with pytest.raises(SettingsError, match="overlap: expected 0 to 9 tokens, found 10"):
        text.load(folder, overlap=10)


def test_series_and_bags_give_the_same_vectors_lazily(folder: Path) -> None:
    import dask.bag as db
    import dask.dataframe as dd
    import pandas as pd

    model, series = text.load(folder), pd.Series(TEXTS * 2, index=range(10, 20))
    expected = model(TEXTS * 2)
    frame = model(series)
    assert frame.index.tolist() == series.index.tolist()
    np.testing.assert_array_equal(frame.to_numpy(), expected)
    lazy = model(dd.from_pandas(series, npartitions=3))
    pd.testing.assert_frame_equal(lazy.compute(scheduler="threads"), frame)
    bag = model(db.from_sequence(TEXTS * 2, npartitions=2))
    np.testing.assert_array_equal(np.stack(bag.compute(scheduler="threads")), expected)


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
        ({"intermediate_size": 32}, r"expected weights of shape \(32, 16\) by config.json"),
        ({"num_hidden_layers": 1}, "encoder.layer.1.*: a weight that this reader does not know"),
    ],
)
def test_settings_that_change_numbers_are_refused(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelFileError, match=words):
        text.load(write_folder(tmp_path / "model", **settings))


def test_what_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(DataError, match="text 1: expected a str, found None"):
        text.load(folder)(["a", None])
    with pytest.raises(ModelFileError, match="expected weights of a classifier"):
        text.load(folder, "classify")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelFileError, match=r"expected tokenizer.json, found none"):
        text.load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"expected weights in model.safetensors or"):
        text.load(folder)


def test_files_of_texts_become_files_of_vectors_once(folder: Path, tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow.parquet as parquet

    from daskdl.text.files import embed

    model, frame = text.load(folder), pd.DataFrame({"text": TEXTS * 2, "id": range(10)})
    source, lines = tmp_path / "texts.parquet", tmp_path / "texts.jsonl"
    frame.to_parquet(source, row_group_size=4)
    frame.to_json(lines, orient="records", lines=True)
    with dask.config.set(scheduler="threads"):
        written = embed(model, str(source), tmp_path / "a", keep=["id"])
        assert (len(written.parts), written.samples) == (3, 10)
        Path(written.parts[1]).unlink()
        again = embed(model, str(source), tmp_path / "a", keep=["id"])
        assert again.written == (1,)
        embed(model, str(lines), tmp_path / "b", keep=["id"])
        for out in "ab":
            table = parquet.read_table(tmp_path / out).to_pandas()
            assert table["id"].tolist() == [*range(10)]
            np.testing.assert_array_equal(np.stack(table["vector"]), model(TEXTS * 2))
        with pytest.raises(SettingsError, match="to be of a run with"):
            embed(model, str(source), tmp_path / "a")
        with pytest.raises(DataError, match=r"expected columns \['words'\], found none called"):
            embed(model, str(source), tmp_path / "c", "words")
        lines.write_text('{"text": "rain", "id": 0}\nrain\n')
        with pytest.raises(DataError, match=r"partition 0.*line 1 .*with id, text, found rain"):
            embed(model, str(lines), tmp_path / "d", keep=["id"])
    assert not [*(tmp_path / "d").glob("*.parquet")]


@pytest.mark.slow
def test_workers_give_the_vectors_of_this_process(folder: Path) -> None:
    import dask.dataframe as dd
    import pandas as pd

    from daskdl.cluster import connect

    model = text.load(folder)
    with connect("local", workers=2):
        made = model(dd.from_pandas(pd.Series(TEXTS * 3), npartitions=4)).compute()
    np.testing.assert_array_equal(made.to_numpy(), model(TEXTS * 3))
