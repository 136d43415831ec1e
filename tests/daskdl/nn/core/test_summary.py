"""The table of a model's modules: what it says, and that it leaves the model as it was."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn


def model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding="same", seed=0),
        nn.BatchNorm(4),
        nn.Residual(nn.Dropout(0.5)),
        nn.Flatten(),
        nn.Linear(144, 2, seed=1).freeze("bias"),
    )


def test_rows_and_totals():
    summary = model().summary((6, 6, 1))
    rows = {row.name: row for row in summary.rows}
    assert list(rows)[:3] == ["", "layers.0", "layers.1"]
    assert rows["layers.0"].output_shapes == (("N", 6, 6, 4),)
    assert rows["layers.0"].parameters == 9 * 4 + 4
    assert rows["layers.0"].bytes == 6 * 6 * 4 * 4
    assert rows["layers.4"].output_shapes == rows[""].output_shapes == (("N", 2),)
    assert sum(row.parameters for row in summary.rows) == summary.parameters == 40 + 8 + 290
    assert summary.trainable == summary.parameters - 2
    assert summary.buffers == 8


def test_text_and_html():
    summary = model().summary((6, 6, 1))
    lines = str(summary).split("\n")
    assert lines[0].split() == ["name", "layer", "output", "shape", "parameters", "bytes"]
    assert lines[3].split() == ["layers.0", "Conv2d", "(N,", "6,", "6,", "4)", "40", "576"]
    assert lines[-1] == "338 parameters (336 trainable) and 8 numbers in buffers, 1,384 bytes"
    assert repr(summary) == str(summary)
    html = summary._repr_html_()
    assert html.count("<tr>") == len(summary.rows) + 1
    assert "<td>Conv2d</td>" in html


def test_the_model_is_left_as_it_was():
    network = model()
    network.layers[2].eval()
    before = network.flat_buffers.copy()
    network.summary((6, 6, 1))
    np.testing.assert_array_equal(network.flat_buffers, before)
    modes = [module.training for _, module in network.modules()]
    assert modes == [True] * 3 + [False] * 2 + [True] * 2
    assert not any("forward" in vars(module) for _, module in network.modules())
    with pytest.raises(ValueError, match="Conv2d: expected"):
        network.summary((6, 6, 2))
    assert not any("forward" in vars(module) for _, module in network.modules())


def test_several_inputs_ids_and_results():
    assert nn.Bilinear(3, 4, 5).summary([(3,), (4,)]).rows[0].output_shapes == (("N", 5),)
    assert nn.Embedding(9, 4).summary((7,), "int64").rows[0].output_shapes == (("N", 7, 4),)
    assert len(nn.LSTM(3, 4).summary((7, 3)).rows[0].output_shapes) == 3


def test_shared_parameters_count_once():
    layer = nn.Linear(3, 3)
    summary = nn.Sequential(layer, layer).summary((3,))
    assert summary.parameters == sum(row.parameters for row in summary.rows) == 12
