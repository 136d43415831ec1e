"""The examples on texts: reviews of films, and calls that go from Kafka to specialists."""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from ci import example_data
from daskdl.errors import DataError, MissingExtraError, SettingsError
from tests.examples.conftest import EXAMPLES

SMALL = ["--words", "4000", "--length", "40", "--batch-size", "64", "--rate", "0.05"]


@pytest.fixture
def main(example):
    return example("text_classifier").main


@pytest.fixture(scope="module")
def reviews(wheel) -> pd.DataFrame:
    """3,000 one-sentence reviews, half of them good ones."""
    table = example_data.reviews(wheel(example_data.REVIEWS[0]))
    table = table[table["source"] == "rotten_tomatoes"]
    return table.sample(3000, random_state=0)[["text", "label"]]


@pytest.mark.slow
def test_tells_good_from_bad(main, reviews, tmp_path, capsys):
    reviews.to_parquet(tmp_path / "reviews.parquet", row_group_size=800)
    predictions = tmp_path / "out"
    accuracy = main(
        [str(tmp_path / "reviews.parquet"), *SMALL, "--epochs", "4", "--predictions",
         str(predictions)]
    )  # fmt: skip
    assert accuracy > 0.62
    assert f"accuracy on 600 new texts: {accuracy:.4f}" in capsys.readouterr().out
    with pytest.raises(SettingsError, match=r"expected .*out to have .* of one model"):
        main([str(tmp_path / "reviews.parquet"), *SMALL, "--predictions", str(predictions)])
    table = pd.concat(map(pd.read_parquet, sorted(predictions.glob("*.parquet"))))
    assert len(table) == 600
    assert set(table["prediction"]) == {0, 1}


@pytest.mark.slow
def test_text_files_and_vectors(main, reviews, tmp_path, capsys):
    for i, (text, label) in enumerate(reviews[:60].itertuples(index=False)):
        folder = tmp_path / "texts" / ["bad", "good"][label]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.txt").write_text(text, "utf-8")
    rows = "".join(f"{word} {' '.join(['0.5'] * 100)}\n" for word in ("the", "a", "film"))
    (tmp_path / "vectors.txt").write_text(rows)
    accuracy = main(
        [str(tmp_path / "texts"), *SMALL, "--encoder", "gru", "--epochs", "1", "--minimum", "1",
         "--vectors", str(tmp_path / "vectors.txt")]
    )  # fmt: skip
    assert 0 <= accuracy <= 1
    assert "accuracy on 12 new texts" in capsys.readouterr().out


@pytest.mark.slow
def test_text_files_need_no_pyarrow(tmp_path):
    for label, words in {"rain": "wet cloud umbrella", "sun": "dry sky beach"}.items():
        (tmp_path / label).mkdir()
        for i in range(20):
            (tmp_path / label / f"{i}.txt").write_text(f"{words} {i}")
    run = subprocess.run(
        [sys.executable, "-c", "import runpy, sys\nsys.modules['pyarrow'] = None\n"
         "sys.argv[:] = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')",
         EXAMPLES / "text_classifier.py", tmp_path, "--epochs", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "on 8 new texts" in run.stdout


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_missing_texts_are_refused(main, tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=rf"{name}: expected Parquet, or a folder of \*/\*\.txt"):
        main([str(tmp_path / name)])


def test_parquet_without_pyarrow_names_the_extra(main, tmp_path, monkeypatch):
    (tmp_path / "reviews.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"expected pyarrow.*pip install '.*\[parquet\]'"):
        main([str(tmp_path / "reviews.parquet")])


WORDS = {
    "money": ["loan", "bank", "euro", "interest", "account"],
    "health": ["doctor", "pain", "fever", "pill", "nurse"],
}


@pytest.mark.long
def test_calls_reach_their_specialists(example, tmp_path):
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("noida_db")
    from ci.kafka import broker

    rng = np.random.default_rng(0)
    with (tmp_path / "calls.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        for i in range(200):
            label = sorted(WORDS)[i % 2]
            rows.writerow([" ".join(rng.choice(WORDS[label], 4)), label])
    (tmp_path / "kafka").mkdir()
    with broker(tmp_path / "kafka") as kafka:
        counts = example("call_routing").main(
            ["--brokers", kafka.servers, "--csv", str(tmp_path / "calls.csv"), "--rate", "200",
             "--seconds", "2", "--epochs", "30", "--plot", str(tmp_path / "latency.png")]
        )  # fmt: skip
    assert counts.total() == 400
    assert counts["routing-money"] > 100
    assert counts["routing-health"] > 100
    assert (tmp_path / "latency.png").stat().st_size > 5000
