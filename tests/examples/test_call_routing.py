"""The example on a small CSV: calls go from Kafka to the specialists' topics."""

from __future__ import annotations

import csv

import numpy as np
import pytest

pytest.importorskip("confluent_kafka")
pytest.importorskip("noida_db")

from ci.kafka import broker

WORDS = {
    "money": ["loan", "bank", "euro", "interest", "account"],
    "health": ["doctor", "pain", "fever", "pill", "nurse"],
}


@pytest.mark.long
def test_calls_reach_their_specialists(example, tmp_path):
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
