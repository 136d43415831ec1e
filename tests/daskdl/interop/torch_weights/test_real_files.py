"""A published speaker encoder, in torch.save's old format, gives torch's embeddings."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from ci.realdata import downloaded
from daskdl import nn, ops
from daskdl.interop import read
from tests.daskdl.gradients import normal


class Encoder(nn.Module):
    """Resemblyzer's network: the last state of three LSTM layers, a linear one and a ReLU."""

    def __init__(self):
        self.lstm = nn.LSTM(40, 256, layers=3, returns="last")
        self.linear = nn.Linear(256, 256)

    def forward(self, x):
        return ops.normalize(ops.relu(self.linear(self.lstm(x))))


@pytest.mark.slow
def test_resemblyzer(tmp_path, torch):
    wheel = downloaded("resemblyzer==0.1.4", tmp_path)
    if wheel is None:
        pytest.skip("the package cannot be had")
    path = tmp_path / "pretrained.pt"
    path.write_bytes(zipfile.Path(wheel, "resemblyzer/pretrained.pt").read_bytes())
    state = torch.load(path, weights_only=True, map_location="cpu")["model_state"]
    found = read(path, "model_state.")
    assert found.keys() == state.keys()
    for name, tensor in state.items():
        np.testing.assert_array_equal(found[name], tensor.numpy())

    wanted = {name: array for name, array in found.items() if "similarity" not in name}
    encoder = Encoder()
    encoder.load_state_dict(wanted, names="torch")
    lstm, linear = torch.nn.LSTM(40, 256, 3, batch_first=True), torch.nn.Linear(256, 256)
    lstm.load_state_dict({n[5:]: t for n, t in state.items() if n.startswith("lstm.")})
    linear.load_state_dict({n[7:]: t for n, t in state.items() if n.startswith("linear.")})
    x = np.abs(normal(4, 30, 40)).astype("f4")
    with torch.no_grad():
        last = torch.relu(linear(lstm(torch.tensor(x))[1][0][-1]))
        right = torch.nn.functional.normalize(last).numpy()
    np.testing.assert_allclose(encoder.predict(x), right, atol=1e-5)
