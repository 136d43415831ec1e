"""The example on the first users of MovieLens-100k, and on a small generated set."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ci import realdata
from daskdl.metrics import HitRatio


@pytest.fixture
def ncf(example):
    return example("ncf")


@pytest.mark.slow
def test_ranks_what_users_take_to(ncf, wheel, tmp_path, capsys):
    names, *lines = realdata.ratings(wheel(realdata.MOVIELENS[0])).splitlines()
    some = [line for line in lines if int(line.split("\t")[0]) <= 100]
    (tmp_path / "some.inter").write_text("\n".join([names, *some]))
    options = ["--epochs", "2", "--batch-size", "256", "--rate", "0.003", "--seeds", "2"]
    options += ["--target", "0.15", "--among", "100"]
    results = ncf.main([str(tmp_path / "some.inter"), *options])
    shown = capsys.readouterr().out
    assert "100 users" in shown
    assert "2 of 2 reached HR@10 of 100 of 0.15" in shown  # by chance it would be 0.1
    for result in results:
        assert 0 < result.reached < 300
        assert result.best["HR@10 of 100"] >= 0.15
        assert result.best["NDCG@10 of 999"] < result.best["HR@10 of 999"]
    by_popularity = re.search(r"by popularity alone: .*HR@10 of 100 (0\.\d+)", shown)
    assert 0.1 < float(by_popularity[1]) < 0.6


def test_the_generated_set_is_like_movielens(ncf, monkeypatch):
    monkeypatch.setattr(ncf, "MOVIELENS_20M", (300, 100, 4000))
    monkeypatch.setattr(ncf, "ITEMS", (5, 1.0))
    known = ncf.generate()
    assert (known.user_count, known.item_count) == (300, 100)
    assert len(known) == 4000 == len(np.unique(known.pairs, axis=0))
    counts = np.sort(np.bincount(known.items, minlength=100))
    assert counts[-10:].sum() > 3 * counts[:10].sum()
    args = ncf.parse(["generated", "--iterations", "3", "--batch-size", "20"])
    assert ncf.speed(known, args) > 0


def test_a_ranking_among_fewer(ncf):
    scores = np.array([[0.5, *([0.1] * 20), *([0.9] * 20)]], np.float32)
    assert ncf.Among(HitRatio(10), 20)(scores, None) == 1
    assert ncf.Among(HitRatio(10), 40)(scores, None) == 0
