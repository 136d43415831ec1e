"""Torch modules whose forward takes several inputs, some of them by name."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.nn import CrossEntropyLoss, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer

torch = pytest.importorskip("torch")

from daskdl.torch import TorchLoss, TorchModule  # noqa: E402

IDS = np.random.default_rng(0).integers(0, 9, (30, 4))
MASK = (np.arange(4) < np.random.default_rng(1).integers(1, 5, 30)[:, None]).astype(np.int64)
LABEL = (IDS[:, 0] > 4).astype(np.int64)


class Masked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(9, 6)
        self.linear = torch.nn.Linear(6, 2)

    def forward(self, input_ids, *, attention_mask):
        assert input_ids.dtype == attention_mask.dtype == torch.int64
        vectors = self.table(input_ids) * attention_mask[..., None]
        return self.linear(vectors.sum(1) / attention_mask.sum(1, keepdim=True))


def test_inputs_by_name_reach_the_module():
    torch.manual_seed(0)
    net = Masked()
    x = {"attention_mask": MASK, "input_ids": IDS}
    samples = SampleSet.from_arrays(x=x, y=LABEL, partitions=2)
    trainer = Trainer(TorchModule(net), CrossEntropyLoss(), SGD(0.5))
    history = trainer.fit(samples, epochs=20, batch_size=10, progress=False)
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    wanted = net(torch.from_numpy(IDS), attention_mask=torch.from_numpy(MASK)).detach().numpy()
    np.testing.assert_allclose(trainer.model.predict(x), wanted, rtol=1e-5, atol=1e-6)


class Named(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kind, self.sum = torch.nn.Linear(4, 2), torch.nn.Linear(4, 1)

    def forward(self, x):
        return {"kind": self.kind(x), "sum": self.sum(x)}


def test_results_by_name_are_trained_by_their_names():
    torch.manual_seed(0)
    x = IDS.astype(np.float32) / 9
    y = {"kind": LABEL, "sum": x.sum(1, keepdims=True)}
    losses = {"kind": CrossEntropyLoss(), "sum": MSELoss()}
    trainer = Trainer(TorchModule(Named()), losses, SGD(0.2))
    history = trainer.fit(SampleSet.from_arrays(x=x, y=y), epochs=20, batch_size=10, progress=False)
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    ours = trainer.model.predict(x)
    theirs = trainer.model.module(torch.from_numpy(x))
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose(ours["sum"], theirs["sum"].detach().numpy(), rtol=1e-5, atol=1e-6)
    only = TorchModule(Named(), output="sum").predict(x)
    assert only.shape == (30, 1)


def test_whole_results_are_not_trained_and_losses_with_parameters_are_refused():
    net, margin = Named(), torch.nn.Linear(2, 2)
    net.register_forward_hook(lambda net, x, y: (y["kind"], y["kind"].argmax(1)))
    samples = SampleSet.from_arrays(x=IDS.astype(np.float32), y=LABEL.astype(">i8"))
    entropy = torch.nn.functional.cross_entropy
    for loss in (lambda p, t: entropy(margin(p[0]), t), lambda p, t: net.kind.weight.mean()):
        with pytest.raises(SettingsError, match=r"found parameters of shape .* would not train"):
            Trainer(TorchModule(net), TorchLoss(loss), SGD(0.2)).fit(samples, epochs=1)
    loss = TorchLoss(lambda p, t: entropy(p[0], t))
    Trainer(TorchModule(net), loss, SGD(0.2)).fit(samples, epochs=1)
