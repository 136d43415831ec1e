"""Trainer, History and Module in notebooks; the progress of a fit there."""

from __future__ import annotations

import re

import numpy as np
import pytest

from daskdl.metrics import Accuracy
from daskdl.nn import CrossEntropyLoss, Linear, ReLU, Sequential
from daskdl.optim import Adam
from daskdl.train import Trainer
from daskdl.train.watch.display import sparkline

X = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def trainer() -> Trainer:
    model = Sequential(Linear(4, 8, seed=1), ReLU(), Linear(8, 2, seed=2))
    return Trainer(model, CrossEntropyLoss(), Adam(1e-2), metrics=[Accuracy()])


def test_a_trainer_says_what_it_trains_and_how_that_went():
    made = trainer()
    assert "not fitted yet" in made._repr_html_()
    made.fit(X, Y, epochs=12, batch_size=16, progress=False)
    html = made._repr_html_()
    assert "Sequential of 58 parameters" in html
    assert "<polyline" in html
    epochs = re.findall(r"<tr><td>(\d+)</td>", made.history._repr_html_())
    assert epochs == [str(e) for e in range(3, 13)]  # the last ten
    assert "<th>accuracy</th>" in html


def test_a_sparkline_goes_down_with_the_loss():
    points = re.search(r'points="([^"]+)"', sparkline([3.0, np.nan, 2.0, 1.0])).group(1)
    at = [tuple(map(float, p.split(","))) for p in points.split()]
    assert len(at) == 3
    assert [y for _, y in at] == sorted(y for _, y in at)  # down the page
    assert sparkline([]) == sparkline([np.nan]) == ""
    assert sparkline(range(10_000)).count(",") == 120


def test_a_module_is_a_table():
    model = trainer().model.freeze("layers.0")
    html = model._repr_html_()
    assert "Linear(4, 8, seed=1)" in html
    assert "40 (frozen)" in html
    assert html.count("<tr>") == 5


NOTEBOOK = [
    "import numpy as np\nfrom daskdl.nn import Linear, MSELoss\nfrom daskdl.optim import SGD\n"
    "from daskdl.train import Trainer\nx = np.ones((32, 2), np.float32)\n"
    "trainer = Trainer(Linear(2, 1), MSELoss(), SGD(0.1))\n"
    "history = trainer.fit(x, x[:, :1], epochs=3, batch_size=8)",
    "trainer",
    "history",
    "from daskdl.train import LivePlot\n"
    "trainer.fit(x, x[:, :1], epochs=3, batch_size=8, callbacks=[LivePlot(every=0)])",
    "import os, signal\nfrom daskdl.train import Callback\n"
    "class CtrlC(Callback):\n"
    "    def on_group_end(self, trainer, iteration):\n"
    "        os.kill(os.getpid(), signal.SIGINT)\n"
    "trainer.fit(x, x[:, :1], epochs=3, batch_size=8, callbacks=[CtrlC()])",
]


@pytest.mark.kills  # Ctrl-C in its last cell
def test_an_executed_notebook_shows_progress_and_tables():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipywidgets")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in NOTEBOOK])
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True).execute()
    fit, shown, history, live, stopped = (cell.outputs for cell in notebook.cells)
    assert "application/vnd.jupyter.widget-view+json" in fit[0].data
    widgets = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    texts = [w["state"].get("value", "") for w in widgets.values()]
    assert any("iteration 12 of 12" in str(t) and "<polyline" in str(t) for t in texts)
    assert "Trainer</caption>" in shown[0].data["text/html"]
    assert "<polyline" in history[0].data["text/html"]
    assert sum("image/png" in output.get("data", {}) for output in live) == 1  # and no more of it
    told = "\n".join(stopped[-1].traceback)
    assert "fit interrupted after iteration" in told
    assert "Traceback" not in told
