"""A text has the same vector in any batch and collection; embed writes files of vectors."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

from daskdl import text
from daskdl.errors import DataError, SettingsError
from daskdl.nn import load, save
from tests.daskdl.text.folders import LONG, TEXTS, WORDS, write_folder

pytest.importorskip("tokenizers")

from tokenizers import Tokenizer


def test_a_text_has_one_vector_in_any_batch(folder: Path) -> None:
    model, rng = text.load(folder), np.random.default_rng(0)
    many = [" ".join(rng.choice(WORDS[4:], rng.integers(1, 11))) for _ in range(256)]
    together = model(many)
    np.testing.assert_array_equal(np.stack([model(one) for one in many]), together)
    sevens = [model(many[i : i + 7]) for i in range(0, 256, 7)]
    np.testing.assert_array_equal(np.concatenate(sevens), together)
    np.testing.assert_array_equal(text.load(folder, threads=2)(many), together)
    assert model([]).shape == (0, 16)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    for length in (128, 512):  # padding that the tokenizer asks for
        padded = Tokenizer.from_str(json.dumps(tokenizer))
        padded.enable_padding(length=length)
        padded.save(str(folder / "tokenizer.json"))
        np.testing.assert_array_equal(text.load(folder)(many), together)


@pytest.mark.parametrize("options", [{"relative": 32}, {"rotary": [(1e4, 0), (1e3, 2)]}])
def test_blocks_of_other_kinds_give_one_vector_too(options: dict[str, Any], tmp_path: Path) -> None:
    encoder = text.TextEncoder(len(WORDS), 16, 2, 2, 24, places=80, seed=0, **options)
    save(text.TextHead(encoder), tmp_path / "head.safetensors")
    network = load(tmp_path / "head.safetensors").eval()
    model = text.TextModel(network, text.load(write_folder(tmp_path / "any")).tokenizer)
    many = [*TEXTS, LONG] * 3
    together = replace(model, threads=2)(many)
    for i in range(6):
        np.testing.assert_array_equal(together[i::6], model(many[i])[None].repeat(3, 0))
    assert len(np.unique(together[:, 0])) == 6


def test_long_texts_are_cut_and_logged_or_split(folder: Path, caplog) -> None:
    words = [WORDS[4 + i % 9] for i in range(24)]
    texts = ["rain", " ".join(words), "a sea"]
    cut = text.load(folder)(texts)
    assert "1 of 3 texts have more than 12 tokens and were cut" in caplog.text
    windows = [" ".join(words[a : a + 10]) for a in (0, 7, 14)]  # of 12 tokens with [CLS] and [SEP]
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


def test_labels_prompts_and_arrays_of_xarray(folder: Path) -> None:
    import dask.dataframe as dd
    import pandas as pd
    import xarray as xr

    model = text.load(folder, "classify", labels=["dry", "wet"])
    expected = [model.labels[i] for i in model(TEXTS).argmax(1)]
    series = pd.Series(TEXTS, index=range(5, 10))
    labels = model.classify(dd.from_pandas(series, npartitions=2)).compute(scheduler="threads")
    assert model.classify(TEXTS) == labels.tolist() == expected == [*map(model.classify, TEXTS)]
    assert labels.index.tolist() == [*range(5, 10)]
    settings = {"prompts": {"query": "the rain ", "none": ""}, "default_prompt_name": None}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    with_prompt = text.load(folder, prompt="query")
    np.testing.assert_array_equal(with_prompt(["falls"]), text.load(folder)(["the rain falls"]))
    with pytest.raises(SettingsError, match=r"\['query', 'none'\] as config_.* found 'x'"):
        text.load(folder, prompt="x")
    array = xr.DataArray(TEXTS, {"place": [*"abcde"]}, ["place"], "comment")
    vectors = with_prompt(array.chunk(place=2))
    assert vectors.dims == ("place", "feature")
    assert vectors.chunks[0] == (2, 2, 1)
    np.testing.assert_array_equal(vectors.compute(scheduler="threads"), with_prompt(TEXTS))
    assert vectors.place.values.tolist() == [*"abcde"]


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
        with pytest.raises(SettingsError, match="to have 3 partitions as parquet, of version"):
            embed(model, str(source), tmp_path / "a")
        with pytest.raises(DataError, match=r"expected columns \['words'\], found none called"):
            embed(model, str(source), tmp_path / "c", "words")
        lines.write_text('{"text": "rain", "id": 0}\nrain\n')
        with pytest.raises(DataError, match=r"partition 0.*line 1 .*with id, text, found rain"):
            embed(model, str(lines), tmp_path / "d", keep=["id"])
        vectors = model(TEXTS * 2)
        kinds: dict[str, Any] = {
            "float16": vectors.astype(np.float16), "binary": np.packbits(vectors > 0, axis=1),
            "int8": np.rint(127 * vectors / abs(vectors).max(1, keepdims=True)),
        }  # fmt: skip
        for kind, expected in kinds.items():
            embed(model, str(source), tmp_path / kind, numbers=kind)
            table = parquet.read_table(tmp_path / kind).to_pandas()
            np.testing.assert_array_equal(np.stack(table["vector"]), expected)
        with pytest.raises(SettingsError, match=r"numbers: expected float32, float16, .* 'bf16'"):
            embed(model, str(source), tmp_path / "e", numbers="bf16")
    assert not [*(tmp_path / "d").glob("*.parquet")]


def killing(texts: Any, marker: Path) -> Any:
    """Return texts, and kill the first worker that gets those with the sea."""
    if "sea" in texts.iloc[0]:
        try:
            marker.touch(exist_ok=False)
        except FileExistsError:
            return texts
        os.kill(os.getpid(), signal.SIGKILL)
    return texts


@pytest.mark.slow
@pytest.mark.kills
def test_any_workers_give_the_vectors_of_this_process(folder: Path, client_of, tmp_path) -> None:
    import dask.dataframe as dd
    import pandas as pd

    model, texts = text.load(folder), pd.Series(TEXTS * 3)
    expected = model(TEXTS * 3)
    series = dd.from_pandas(texts, npartitions=8)
    for workers in (1, 3):
        with client_of(workers).as_current():
            np.testing.assert_array_equal(model(series).compute().to_numpy(), expected)
    dying = series.map_partitions(killing, tmp_path / "killed", meta=texts.iloc[:0])
    with client_of(3).as_current():
        np.testing.assert_array_equal(model(dying).compute().to_numpy(), expected)
    assert (tmp_path / "killed").exists()
