"""Tables of figures: of what each benchmark writes."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from ci import figures, performance_tables
from ci.bench import engine, engine_control, engine_hosts, report, training
from daskdl.scaling.report import as_dict
from daskdl.scaling.sweep import Row
from tests.daskdl.scaling.tiny import run

CONTROL = [
    engine_control.Row("gang", 32, 10, 20.0, 1.0, 15.0, 0.004, 5.0, 30.0, 9.0, 0.05),
    engine_control.Row("forms", 32, 10, 40.0, 3.0, 15.0, 0.019, 5.0, 90.0, 9.0, 0.05),
]
ROWS = {
    "kernels": [
        asdict(report.Row(f"conv/{i}", 1, 1.0, ratio, ratio, 1.0, ratio, "eager"))
        for i, ratio in enumerate((2.0, 8.0))
    ],
    "training": [
        asdict(training.StepRow("LeNet", 2, 1, 2, 2.0, 1, 2, "eager", 8e3, 4e3, 10.2, None))
    ],
    "examples": [
        {"program": "examples/a.py b", "said": "accuracy on 9 texts: 0.5", "seconds": 61.7}
    ],
    "engine": engine.as_json(
        [
            engine.Row(28, "gloo", 20, 15, 1.0),
            engine.Row(28, "socket", 9, 8, 0.5),
            engine.Row(28, engine.GANG, 10, 5, 0.5),
        ]
    ),
    "inference": [
        {"name": "ResNet, 16", "threads": 2, "ours_ms": 20.0, "peer_ms": 30.0, "ratio": 1.5,
         "peer": "onnxruntime"}
    ],
    "control": [asdict(row) for row in CONTROL],
    "hosts": [asdict(engine_hosts.Row(1000, 4, 28, 42, 360.5, 400.25, 0.5))],
    "scaling": [as_dict(Row("strong", run(2, 16, 0.36), 0.875))],
}  # fmt: skip

EXPECTED = {
    "kernels": "| conv | 1 | 2 | 4.00 | 2.00 |",
    "training": "| LeNet | 2 | 8000 | 4000 | eager | 2.00 | 10 | - |",
    "inference": "| ResNet, 16 | 2 | 20 | 30 | 1.50 | onnxruntime |",
    "examples": "| `examples/a.py b` | accuracy on 9 texts: 0.5 | 62 |",
    "engine": "| gang: all but computation | 28 | 10.00 | 5.00 | 20.00 | 2.00 |",
    "control": "| stay | 32 | 10 | 20.0 | 15.0 | 1.0 | 0.40 | 5 |",
    "hosts": "| 1000 | 4 | 28 | 42 | 360.5 | 400.2 | 50 |",
    "scaling": "| strong | 2 | 16 | 44.44 | 360 "
    "| 10 | 20 | 30 | 40 | 50 | 60 | 70 | 80 | 87.5 | - |",
}  # fmt: skip


@pytest.mark.parametrize("name", performance_tables.TABLES)
def test_each_row_is_a_line_below_its_header(name):
    header, _, *lines = performance_tables.TABLES[name]({"rows": ROWS[name]})
    assert EXPECTED[name] in lines
    assert {line.count("|") for line in lines} == {header.count("|")}


def test_every_figure_has_a_table():
    assert {name.partition("-")[0] for name in figures.COMMANDS} == performance_tables.TABLES.keys()


def test_what_is_predicted_takes_the_control_that_was_measured(monkeypatch):
    found = {"rows": ROWS["control"]}
    monkeypatch.setattr(performance_tables, "figure", {"control": found}.get)
    lines = performance_tables.scheduling()
    # Of a turn of 2 minutes with 8 groups, one is formed anew.
    assert "| 32 | 4.5 | 0.59 |" in lines
    assert "| 252 | 9.2 | - |" in lines
    header, _, *lines = performance_tables.prediction()
    assert {line.count("|") for line in lines} == {header.count("|")}
    (line,) = (line for line in lines if "inception" in line and "| 32 |" in line)
    assert " 0.59 | 96.3 | 7.0 | 103 |" in line
    assert not any("0.59" in line for line in lines if "| 64 |" in line)
