"""Figures that benchmarks write, their tables, and the page that shows them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict

import pytest

from ci import parity
from ci.bench import timing
from ci.bench.engine import __main__ as engine
from ci.bench.engine import control
from ci.bench.timing import Times
from ci.bench.training import __main__ as training
from ci.performance import __main__ as performance
from ci.performance import tables
from daskdl.scaling.measure import Row
from daskdl.scaling.report import as_dict
from tests.daskdl.scaling.tiny import run


@pytest.mark.slow
def test_the_page_is_what_the_script_writes():
    text = performance.PAGE.read_text(encoding="utf-8")
    assert text == performance.page(text), "run python -m ci.performance"


def test_checking_writes_nothing(tmp_path, monkeypatch, capsys):
    text = performance.PAGE.read_text(encoding="utf-8")
    page = tmp_path / "performance.md"
    page.write_text(text.replace("<!-- table prediction -->\n", "<!-- table prediction -->\n9\n"))
    monkeypatch.setattr(performance, "PAGE", page)
    before = page.read_text()
    assert performance.main(["--check"]) == 1
    assert "run python -m ci.performance" in capsys.readouterr().err
    assert page.read_text() == before
    assert performance.main([]) == 0
    assert performance.main(["--check"]) == 0
    assert page.read_text() == text


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("table engine", "table guests", "expected <!-- table engine -->"),
        ("# Speed", "<!-- table guests -->\n<!-- end -->\n# Speed", "found 'guests'"),
    ],
)  # fmt: skip
def test_a_mark_without_a_table_is_refused(before, after, sentence):
    text = performance.PAGE.read_text(encoding="utf-8").replace(before, after)
    with pytest.raises(ValueError, match=sentence):
        performance.page(text)


def test_a_figure_that_is_missing_names_its_command(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    assert performance.section("engine") == ("\n`python -m ci.bench.engine`: not measured yet\n")


def test_unknown_names_are_refused_with_the_known_ones(capsys):
    assert performance.main(["measure", "weather"]) == 2
    assert performance.main(["keep"]) == 2
    assert "expected some of kernels, training" in capsys.readouterr().err
    assert performance.main(["keep", "kernels"]) == 2
    assert "expected files after the name" in capsys.readouterr().err


CONTROL = [
    control.Row("gang", 32, 10, 20.0, 1.0, 15.0, 0.004, 0.05),
    control.Row("forms", 32, 10, 40.0, 3.0, 15.0, 0.019, 0.05),
]
ROWS = {
    "kernels": [
        asdict(timing.Row(f"conv/{i}", 1, 1.0, ratio, ratio, 1.0, ratio, "eager"))
        for i, ratio in enumerate((2.0, 8.0))
    ],
    "training": [
        asdict(training.StepRow("LeNet", 2, 1, 2, 2.0, 1, 2, "eager", 8e3, 4e3, 10.2, None))
    ],
    "examples": [
        {"program": "examples/a.py b", "said": "accuracy on 9 texts: 0.5", "seconds": 61.7}
    ],
    "engine": engine.rows_of(28, {"gloo": Times([15, 20, 25]), engine.GANG: Times([5, 10, 15])}),
    "inference": [
        {"name": "ResNet, 16", "threads": 2, "ours_ms": 20.0, "peer_ms": 30.0, "ratio": 1.5,
         "peer": "onnxruntime"}
    ],
    "control": [asdict(row) for row in CONTROL],
    "scaling": [as_dict(Row("strong", run(2, 16, 0.36), 0.875))],
}  # fmt: skip

EXPECTED = {
    "kernels": "| conv | 1 | 2 | 4.00 | 2.00 |",
    "training": "| LeNet | 2 | 8000 | 4000 | eager | 2.00 | 10 | - |",
    "inference": "| ResNet, 16 | 2 | 20 | 30 | 1.50 | onnxruntime |",
    "examples": "| `examples/a.py b` | accuracy on 9 texts: 0.5 | 62 |",
    "engine": "| gang: all but computation | 28 | 10.00 | 5.00 | 20.00 | 2.00 |",
    "control": "| stay | 32 | 10 | 20.0 | 15.0 | 1.0 | 0.40 | 5 |",
    "scaling": "| strong | 2 | 16 | 44.44 | 360 "
    "| 10 | 20 | 30 | 40 | 50 | 60 | 70 | 80 | 87.5 | - |",
}  # fmt: skip


@pytest.mark.parametrize("name", tables.TABLES)
def test_each_row_is_a_line_below_its_header(name):
    header, _, *lines = tables.TABLES[name]({"rows": ROWS[name]})
    assert EXPECTED[name] in lines
    assert {line.count("|") for line in lines} == {header.count("|")}


def test_every_figure_has_a_table():
    assert {name.partition("-")[0] for name in performance.COMMANDS} == tables.TABLES.keys()


def test_predictions_take_the_measured_control(monkeypatch):
    figure = {"rows": ROWS["control"]}
    monkeypatch.setattr(tables, "figure", {"control": figure}.get)
    lines = tables.scheduling()
    # In a turn of 2 minutes one of 8 groups is formed anew.
    assert "| 32 | 4.5 | 0.59 |" in lines
    assert "| 252 | 9.2 | - |" in lines
    header, _, *lines = tables.prediction()
    assert {line.count("|") for line in lines} == {header.count("|")}
    (line,) = (line for line in lines if "inception" in line and "| 32 |" in line)
    assert " 0.59 | 96.3 | 7.0 | 103 |" in line
    assert not any("0.59" in line for line in lines if "| 64 |" in line)


def test_rows_of_engines_compare_with_gloo():
    (row,) = ROWS["engine"]
    assert row["name"] == f"synchronization/28 MB/{engine.GANG}"
    assert (row["ours_ms"], row["peer_ms"], row["ratio"]) == (10, 20, 2)


@pytest.mark.slow
def test_the_cost_of_control_is_measured(tmp_path, capsys):
    file = tmp_path / "rows.json"
    few = {"engines": "gang", "workers": 2, "seconds": 0.01, "k": 2, "groups": 1, "settle": 0}
    options = [text for name, value in few.items() for text in (f"--{name}", str(value))]
    assert engine.main(["--part", "control", *options, "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())
    assert (row["engine"], row["workers"], row["iterations"]) == ("gang", 2, 2)
    assert min(row["scheduler"], row["driver"]) > 0
    assert "gang         2   2.0" in capsys.readouterr().out


def test_the_model_of_hosts_predicts_shares_of_an_iteration():
    # 28 MB over 10 Gbit/s: 3.2 % of 1.5 s at 32 hosts, and 3.4 % at 256.
    predicted = tables.predicted
    assert predicted(32, 28, 10_000) / 1500 == pytest.approx(0.032, abs=0.0005)
    assert predicted(256, 28, 10_000) / 1500 == pytest.approx(0.034, abs=0.0005)
    assert predicted(8, 0, 1000) == pytest.approx(6 * tables.MESSAGE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "figures")
    monkeypatch.setattr(performance, "_machine", lambda: {"cores": 2})
    return tmp_path / "figures"


def test_rows_of_several_files_are_kept_with_command_and_machine(folder, tmp_path):
    for i in range(2):
        (tmp_path / f"{i}.json").write_text(json.dumps([{"name": f"case {i}"}]))
        os.utime(tmp_path / f"{i}.json", (0, 86_400 * (i + 1)))
    performance.keep("kernels", [tmp_path / "0.json", tmp_path / "1.json"])
    figure = tables.figure("kernels")
    assert figure["command"] == performance.COMMANDS["kernels"]
    assert figure["machine"] == {"cores": 2}
    assert figure["date"] == "1970-01-03"
    assert figure["rows"] == [{"name": "case 0"}, {"name": "case 1"}]
    assert [file.name for file in folder.iterdir()] == ["kernels.json"]
    assert tables.figure("training") is None


def test_a_measured_benchmark_is_run_and_kept(folder, monkeypatch):
    written = "import sys; open(sys.argv[-1], 'w').write('[{\"name\": 1}]')"
    program = folder.parent / "written.py"
    program.write_text(written)
    monkeypatch.setitem(performance.COMMANDS, "kernels", f"python {program} --quick")
    performance.measure("kernels")
    assert tables.figure("kernels")["rows"] == [{"name": 1}]


def test_published_figures_name_their_source():
    for figure in tables.published().values():
        assert len(figure["source"]) > 20
        assert figure["what"]


def test_the_page_of_parity_is_what_the_script_writes():
    assert parity.PAGE.read_text(encoding="utf-8") == parity.page(), "run python -m ci.parity"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("Swish | Swish9 | SiLU", "no 'Swish9' among our layers"),
        ("## Losses\nMSECriterion | ReLU | MSELoss", "no 'ReLU' among our losses"),
        ("Swish | - | ", "expected a reason"),
    ],
)
def test_rows_that_say_nothing_are_refused(row, sentence, tmp_path, monkeypatch):
    path = tmp_path / "rows.txt"
    path.write_text(row)
    monkeypatch.setattr(parity, "ROWS", path)
    with pytest.raises(ValueError, match=sentence):
        parity.page()
