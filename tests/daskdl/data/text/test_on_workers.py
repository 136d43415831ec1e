"""Texts on the workers of a cluster: counted, encoded and written there, to the same as here."""

from __future__ import annotations

from collections.abc import Iterator

import dask.bag as db
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, get_worker

from daskdl.data import SampleSet
from daskdl.data.results import write_results
from daskdl.data.text import Encode, Tokenizer, Vocabulary

TEXTS = [f"{'the ' * (i % 3)}word{i % 7} and word{i % 4}" for i in range(40)]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


class Elsewhere(Tokenizer):
    """Refuses to work outside of a worker."""

    def __call__(self, text: str) -> list[str]:
        get_worker()  # raises where there is none
        return super().__call__(text)


def test_all_of_it(client, tmp_path):
    here = Vocabulary.build(TEXTS)
    bag = db.from_sequence(TEXTS, npartitions=5)
    with client.as_current():
        assert Vocabulary.build(bag, Elsewhere()).words == here.words
        samples = SampleSet.from_bag(bag)
        assert Vocabulary.build(samples, Elsewhere()).words == here.words
        encoded = samples.map_batches(Encode(here, 6))
        written = write_results(encoded, tmp_path / "out")
        lengths = bag.map(lambda text: len(here.encode(text)))
        counted = write_results(lengths, tmp_path / "counts")
    frame = pd.concat(map(pd.read_parquet, written.parts))
    expected = Encode(here, 6)({"x": TEXTS})["x"]
    np.testing.assert_array_equal(np.stack(frame["x"]), expected)
    frame = pd.concat(map(pd.read_parquet, counted.parts))
    assert list(frame["prediction"]) == [len(text.split()) for text in TEXTS]
