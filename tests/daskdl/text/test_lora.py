"""Adapters: the same bits on any number of workers, and peft's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskdl import SampleSet, Trainer, text
from daskdl.errors import CheckpointError, ModelFileError, SettingsError
from daskdl.nn import CrossEntropyLoss, Map, MultiLoss, MultipleNegativesLoss, load, save
from daskdl.optim import AdamW
from tests.daskdl.text.folders import CLASSIFIER, TEXTS, by_torch, peer, write_folder

pytest.importorskip("tokenizers")

LABELS = ["dry", "wet"]


def classifier(folder: Path) -> text.TextModel:
    return text.load(folder, "classify", labels=LABELS)


def fitted(model: text.TextModel, **options: Any) -> Trainer:
    x, y = np.array(TEXTS * 6, object), np.array([1, 1, 0, 1, 0] * 6)
    samples = SampleSet.from_arrays(x=x, y=y, partitions=3)
    trainer = Trainer(model.network, CrossEntropyLoss(), AdamW(3e-2))
    trainer.fit(
        samples.map_batches(text.Tokens(model.tokenizer)),
        epochs=8, batch_size=8, progress=False, **options,
    )  # fmt: skip
    return trainer


@pytest.mark.long
def test_adapters_have_the_same_bits_on_any_number_of_workers(tmp_path: Path, client_of) -> None:
    folder, results = write_folder(tmp_path / "model"), []
    for workers in (0, 1, 3):
        model = text.lora(classifier(folder), rank=2)
        client = client_of(workers) if workers else None
        trainer = fitted(model, client=client, checkpoint=tmp_path / f"{workers}")
        results.append(model.network.flat.copy())
        state = load_state(tmp_path / f"{workers}")
        assert state["weights"].size == model.network.flat.size < 700
        assert np.mean(trainer.history["loss"][-4:]) < np.mean(trainer.history["loss"][:4]) - 0.2
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    other = text.lora(classifier(write_folder(tmp_path / "other", seed=1)), rank=2)
    with pytest.raises(CheckpointError, match="expected frozen weights"):
        fitted(other, checkpoint=tmp_path / "0")


def test_texts_of_a_pair_are_matched_in_a_batch(tmp_path: Path, client_of) -> None:
    folder, results, first_losses = write_folder(tmp_path / "model"), [], []
    first, second = TEXTS[:4] * 4, ["the rain", "a sea today", "rain falls", "hills and sea"] * 4
    texts = np.array(first, object), np.array(second, object)
    samples = SampleSet.from_arrays(x=texts, y=np.zeros(16), partitions=3)
    runs = (0, "auto", 1), (0, "auto", 3), (3, "gang", 3), (1, "graph", 3)
    for workers, engine, shards in runs:
        model = text.load(folder)
        columns = [text.Tokens(model.tokenizer, name) for name in ("x.0", "x.1")]
        pairs = samples.map_batches(columns[0]).map_batches(columns[1])
        trainer = Trainer(Map(model.network), MultipleNegativesLoss(), AdamW(1e-2))
        client = client_of(workers) if workers else None
        trainer.fit(
            pairs, epochs=8, batch_size=16, progress=False, client=client, engine=engine,
            shards=shards,
        )  # fmt: skip
        assert trainer.history["loss"][-1] < trainer.history["loss"][0] / 1.5
        first_losses.append(trainer.history["loss"][:2])
        results.append(model.network.flat.copy())
    np.testing.assert_array_equal(results[1], results[2])
    np.testing.assert_array_equal(results[1], results[3])
    both = MultiLoss([MultipleNegativesLoss(), MultipleNegativesLoss(2.0)])
    with pytest.raises(SettingsError, match="as the only loss of a fit with several shards"):
        Trainer(Map(model.network), both, AdamW(1e-2)).fit(pairs, epochs=1, batch_size=16)
    # The second loss comes after a step: gradients, too, equal those of one shard.
    np.testing.assert_allclose(first_losses[0], first_losses[1], rtol=1e-4)
    anchor, positive = model(first[:4]), model(second[:4])
    cosines = anchor @ positive.T / np.outer(*map(length, (anchor, positive)))
    expected = np.log(np.exp(2 * cosines).sum(1)) - 2 * np.diag(cosines)
    loss = MultipleNegativesLoss(scale=2.0)((anchor, positive))
    assert float(loss) == pytest.approx(expected.mean(), rel=1e-4)


def length(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=1)


def load_state(folder: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(max(folder.glob("step-*")) / "state.safetensors")


def test_adapters_are_merged_saved_and_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model")
    model = text.lora(classifier(folder), rank=2, targets=("attention.output", "narrow"))
    before = model(TEXTS)
    fitted(model)
    scores = model(TEXTS)
    assert abs(scores - before).max() > 0.1
    text.save_adapter(model, tmp_path / "adapter")
    again = text.load_adapter(classifier(folder), tmp_path / "adapter")
    np.testing.assert_array_equal(again(TEXTS), scores)
    save(model.network, tmp_path / "whole.safetensors")
    ids = np.array([[2, 4, 6, 3]])
    loaded = load(tmp_path / "whole.safetensors")
    np.testing.assert_array_equal(loaded.predict(ids), model.network.predict(ids))
    merged = text.merged(model)
    np.testing.assert_allclose(merged(TEXTS), scores, atol=1e-5)
    assert merged.network.flat.size == text.load(folder).network.flat.size + 16 * 16 + 16 + 2 * 17
    with pytest.raises(SettingsError, match="value, key, query, found 'q_lin'"):
        text.lora(classifier(folder), targets=("q_lin",))
    with pytest.raises(ModelFileError, match="expected adapters of affine"):
        text.load_adapter(text.load(folder), tmp_path / "adapter")
    config = tmp_path / "adapter" / "adapter_config.json"
    config.write_text(config.read_text().replace("{", '{"init_lora_weights": "pissa",', 1))
    with pytest.raises(ModelFileError, match="found init_lora_weights 'pissa', which ch"):
        text.load_adapter(classifier(folder), tmp_path / "adapter")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks for it
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "mpnet", "modernbert"])
@pytest.mark.parametrize(("head", "task"), [("Model", "embed"), (CLASSIFIER, "classify")])
def test_files_are_compatible_with_peft(kind: str, head: str, task: str, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    net, longest = peer(kind, tmp_path / "model", head), 11 if kind == "roberta" else 12
    others = {"distilbert": ["q_lin", "v_lin"], "mpnet": ["q", "v"], "modernbert": ["Wqkv", "Wi"]}
    names = others.get(kind, ["query", "value"] if task == "classify" else "all-linear")
    settings = peft.LoraConfig(
        r=3, lora_alpha=5, target_modules=names, init_lora_weights=False,
        task_type="SEQ_CLS" if task == "classify" else "FEATURE_EXTRACTION",
    )  # fmt: skip
    adapted = peft.get_peft_model(net, settings).eval()
    adapted.save_pretrained(tmp_path / "theirs")
    expected = by_torch(adapted, longest, head)
    model = text.load_adapter(text.load(tmp_path / "model", task), tmp_path / "theirs")
    np.testing.assert_allclose(model(TEXTS), expected, atol=1e-5)
    if kind == "modernbert":  # three separate adapters in place of one
        for i, (_, adapter) in enumerate(model.network.adapters()):
            adapter.down.data += np.random.default_rng(i).normal(size=3)[:, None]
        expected = model(TEXTS)
    text.save_adapter(model, tmp_path / "ours")
    base = type(net).from_pretrained(tmp_path / "model")
    read = peft.PeftModel.from_pretrained(base, tmp_path / "ours").eval()
    np.testing.assert_allclose(by_torch(read, longest, head), expected, atol=1e-5)
