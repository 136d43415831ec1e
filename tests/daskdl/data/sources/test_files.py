"""Files: read where they are used, named when they cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.data.sources.files import takes_url
from daskdl.errors import DataError
from tests.daskdl.data.epochs import everything


@pytest.fixture
def folder(tmp_path):
    for i in range(7):
        (tmp_path / f"{i}.txt").write_text("bad" if i == 4 else str(i))
    return tmp_path


def number(file):
    return int(file.read())


def test_each_file_is_a_sample(folder):
    urls = [f"file://{folder}/{i}.txt" for i in (3, 0, 6)]
    samples = SampleSet.from_files(urls, number, y=[30, 0, 60], partitions=2)
    held = everything(samples)
    assert (held["x"].tolist(), held["y"].tolist()) == ([3, 0, 6], [30, 0, 60])
    assert samples.lengths == (1, 2)
    assert everything(samples.shuffle(1))["x"].sum() == 9


def test_a_function_may_want_the_url(folder):
    def named(file, url):
        return {"name": url.rsplit("/", 1)[1]}

    assert takes_url(named)
    assert not takes_url(number)
    held = SampleSet.from_files(str(folder), named).head(2)
    assert held["name"].tolist() == ["0.txt", "1.txt"]


def test_a_file_that_cannot_be_read_is_named(folder):
    with pytest.raises(DataError, match=r"4\.txt: expected a sample, .*ValueError: invalid"):
        everything(SampleSet.from_files(str(folder), number))
    samples = SampleSet.from_files(str(folder), number, on_error="skip", partitions=2)
    assert not samples.is_counted
    assert everything(samples)["x"].tolist() == [0, 1, 2, 3, 5, 6]
    (bad,) = samples.bad
    assert bad.startswith(f"{folder}/4.txt (ValueError")


def test_columns_beside_files_are_checked(folder):
    with pytest.raises(DataError, match=r"y with one entry for each of 7 files, found shape \(2,"):
        SampleSet.from_files(str(folder), number, y=np.zeros((2, 1)))
