"""A fit on workers whose results are not the same bits says so, once."""

from __future__ import annotations

import logging

import pytest
from distributed import Client

from tests.daskdl.train.runs import fit, problem


def _pretend(features: str | None) -> None:
    """Have numba compile for a processor of other features from now on."""
    from numba.core import config

    config.CPU_FEATURES = features


@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_a_worker_without_avx2_is_told(
    engine: str, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = sorted(client.scheduler_info(n_workers=-1)["workers"])
    with caplog.at_level(logging.WARNING, "daskdl"):
        fit(problem(2), epochs=1, client=client, engine=engine)
        assert not [text for text in caplog.messages if "expected workers" in text]
        client.run(_pretend, "+sse2", workers=[old])
        try:
            fit(problem(2), epochs=1, client=client, engine=engine)
        finally:
            client.run(_pretend, None, workers=[old])
    (line,) = (text for text in caplog.messages if "expected workers" in text)
    assert line.startswith("start of the fit: expected workers of one kind, found bits of ")
    assert "alone, which lacks AVX2 or FMA; daskdl" in line
    assert f"({old})" in line
    assert f"({new})" in line
