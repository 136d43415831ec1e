"""Unchanged torch modules on the engine: the same bits everywhere, no copies, state both ways."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import daskdl
from daskdl.data import SampleSet
from daskdl.errors import ModelFileError, SettingsError, ShapeError
from daskdl.nn import CrossEntropyLoss, Linear, MSELoss, ReLU, Sequential
from daskdl.optim import SGD, Adam
from daskdl.train import Trainer
from tests.daskdl.train.runs import Once, die

torch = pytest.importorskip("torch")

from daskdl.torch import TorchModule  # noqa: E402
from tests.daskdl.torch import nets  # noqa: E402

ClientOf = Callable[[int], Client]


def made(name: str) -> tuple[Any, SampleSet, dict[str, Any]]:
    """Return a module, samples for it, and options of TorchModule."""
    if name == "convolutional":
        return nets.convolutional(), nets.images(), {}
    if name == "recurrent":
        return nets.recurrent(), nets.sentences(classes=11), {}
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(2)
    if name == "BERT":
        config = transformers.BertConfig(
            vocab_size=11,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            num_labels=4,
        )
        net = transformers.BertForSequenceClassification(config)
        return net, nets.sentences(), {"output": "logits"}
    config = transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic", num_labels=4
    )
    net = transformers.ResNetForImageClassification(config)
    return net, nets.images(size=16), {"output": "logits"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "convolutional",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("recurrent", "BERT", "ResNet")),
    ],
)
def test_one_digest_in_process_and_on_any_workers_by_both_engines(
    client_of: ClientOf, name: str
) -> None:
    net, samples, options = made(name)
    alone = nets.digest(nets.fitted(net, samples, **options))
    more = [] if name == "convolutional" else [(1, "gang"), (1, "graph"), (4, "gang"), (4, "graph")]
    for workers, engine in ((2, "gang"), (2, "graph"), (3, "gang"), *more):
        net, samples, options = made(name)
        client = client_of(workers)
        together = nets.fitted(net, samples, client=client, engine=engine, **options)
        assert nets.digest(together) == alone, (workers, engine)


@pytest.mark.kills
@pytest.mark.parametrize(
    ("name", "engine", "workers"),
    [
        ("convolutional", "gang", 2),
        *(
            pytest.param(name, engine, 4, marks=pytest.mark.long)
            for name in ("recurrent", "BERT", "ResNet")
            for engine in ("gang", "graph")
        ),
    ],
)
def test_a_killed_worker_changes_nothing(
    client_of: ClientOf, tmp_path: Path, name: str, engine: str, workers: int
) -> None:
    net, samples, options = made(name)
    alone = nets.digest(nets.fitted(net, samples, **options))
    net, samples, options = made(name)
    samples = samples.map(_Once(tmp_path / "died", die))
    client = client_of(workers)
    together = nets.fitted(net, samples, client=client, engine=engine, **options)
    assert (tmp_path / "died").exists()
    assert nets.digest(together) == alone


class _Once(Once):
    """Dies when the second batch is drawn."""

    def __init__(self, marker: Path, action: Callable[[], None]) -> None:
        super().__init__(marker, 0, action)
        self.batches = 0

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.batches += 1
        if self.batches == 2:
            return super().__call__({"x": np.zeros((1, 5))}) and batch
        return batch


def test_steps_equal_those_of_a_torch_loop() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    twin = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    twin.load_state_dict(net.state_dict())
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(16, k)).astype(np.float32) for k in (5, 2))
    Trainer(TorchModule(net), torch.nn.MSELoss(), Adam(1e-2)).fit(
        SampleSet.from_arrays(x=x, y=y), epochs=5, batch_size=16, progress=False
    )
    optimizer = torch.optim.Adam(twin.parameters(), 1e-2)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(twin(torch.tensor(x)), torch.tensor(y)).backward()
        optimizer.step()
    for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(ours.detach(), theirs.detach(), rtol=2e-4, atol=2e-6)


def test_weights_and_gradients_are_views_of_one_vector() -> None:
    net = nets.convolutional()
    model = TorchModule(net)
    model.flat[:] = 0.5
    assert all(bool((p == 0.5).all()) for p in net.parameters())
    loss = CrossEntropyLoss()(model.train()(np.ones((2, 3, 6, 6), np.float32)), np.array([0, 1]))
    model.zero_grad()
    loss.backward()
    assert any(model.flat_grad)
    gradient = np.concatenate([p.grad.numpy().ravel() for p in net.parameters()])
    np.testing.assert_array_equal(gradient, model.flat_grad)
    assert net[0].weight.data_ptr() == model.flat.ctypes.data


def test_a_module_among_layers_of_daskdl_passes_gradients_on() -> None:
    inner = torch.nn.Linear(4, 3)
    model = Sequential(Linear(2, 4, seed=0), TorchModule(inner), Linear(3, 1, seed=1))
    x = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    model.zero_grad()
    MSELoss()(model(x), np.zeros((5, 1), np.float32)).backward()
    gradients = {name: p.grad.copy() for name, p in model.named_parameters()}
    w = {name: torch.tensor(p.data, requires_grad=True) for name, p in model.named_parameters()}
    h = torch.tensor(x)
    for layer in ("layers.0", "layers.1", "layers.2"):
        h = torch.nn.functional.linear(h, w[f"{layer}.weight"], w[f"{layer}.bias"])
    (h**2).mean().backward()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, w[name].grad, rtol=1e-4, atol=1e-6, err_msg=name)


class Counting(torch.nn.Module):
    """Replaces its buffers by new tensors, as many modules do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(5, 2)
        self.register_buffer("largest", torch.zeros(1))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.largest = torch.maximum(self.largest, x.abs().max())
            self.calls = self.calls + 1
        return self.inner(x)


@pytest.mark.parametrize("engine", [None, "graph", "gang"])
@pytest.mark.parametrize("nested", [False, pytest.param(True, marks=pytest.mark.long)])
def test_after_a_fit_the_module_itself_has_its_buffers(
    engine: str | None, nested: bool, client_of: ClientOf
) -> None:
    torch.manual_seed(4)
    net = torch.nn.Sequential(Counting(), torch.nn.BatchNorm1d(2)).to(torch.float32)
    model = TorchModule(net)
    x = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    samples = SampleSet.from_arrays(x=x, y=x[:, :2], partitions=3)
    options = {} if engine is None else {"client": client_of(2), "engine": engine}
    whole = Sequential(model, ReLU()) if nested else model
    Trainer(whole, MSELoss(), Adam(1e-2)).fit(
        samples, epochs=2, batch_size=30, progress=False, **options
    )
    assert int(net[0].calls) == int(net[1].num_batches_tracked) == 2
    assert 1 < float(net[0].largest) < np.abs(x).max() + 1e-3
    np.testing.assert_array_equal(net[1].running_mean.numpy(), model.state_dict()["1.running_mean"])
    assert not np.isin(net[1].running_mean.numpy(), [0, 1]).any()


def test_a_buffer_of_another_shape_is_refused() -> None:
    class Growing(Counting):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.largest = torch.zeros(len(x) + 1)
            return super().forward(x)

    with pytest.raises(
        ShapeError, match=r"buffer largest: expected shape \(1,\), as before, found"
    ):
        TorchModule(Growing())(np.zeros((3, 5), np.float32))


def test_the_state_goes_out_and_in_bit_for_bit(tmp_path: Path) -> None:
    for net, other in (
        (nets.convolutional(), nets.convolutional()),
        (nets.recurrent(), nets.recurrent()),
    ):
        with torch.no_grad():
            for p in net.parameters():
                p += 0.1
        state = {name: value.clone() for name, value in net.state_dict().items()}
        model = TorchModule(net)
        assert model.state_dict().keys() == state.keys()
        daskdl.save(model, tmp_path / "m.safetensors")
        daskdl.load(tmp_path / "m.safetensors", module=other)
        for name, value in other.state_dict().items():
            assert torch.equal(value, state[name]), name
        fresh = TorchModule(other)
        fresh.load_state_dict(state)
        for name, value in fresh.module.state_dict().items():
            assert torch.equal(value, state[name]), name


def test_files_and_modules_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    daskdl.save(TorchModule(torch.nn.Linear(2, 3)), path)
    with pytest.raises(ModelFileError, match=r"expected module=.*daskdl.load\(path, module=net\)"):
        daskdl.load(path)
    with pytest.raises(ModelFileError, match="size mismatch for weight"):
        daskdl.load(path, module=torch.nn.Linear(2, 4))
    daskdl.save(Linear(2, 3), path)
    with pytest.raises(ModelFileError, match="expected no module= found Linear"):
        daskdl.load(path, module=torch.nn.Linear(2, 3))
    with pytest.raises(ShapeError, match="Missing key"):
        TorchModule(torch.nn.Linear(2, 3)).load_state_dict({})


class Mixed(torch.nn.Module):
    """A module partly in half precision, with buffers that never change."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(5, 4).to(torch.bfloat16)
        self.second = torch.nn.Linear(4, 2)
        self.register_buffer("scale", torch.tensor(0.1))  # saved, and never changed
        self.register_buffer("ids", torch.arange(5), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x[:, self.ids].to(torch.bfloat16)).float()) * self.scale


def test_half_tensors_and_constants_reach_workers(client_of: ClientOf) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(30, k)).astype(np.float32) for k in (5, 2))

    def run(**options: Any) -> tuple[str, Any]:
        torch.manual_seed(4)
        model = TorchModule(Mixed())
        trainer = Trainer(model, MSELoss(), Adam(1e-2))
        samples = SampleSet.from_arrays(x=x, y=y, partitions=3)
        trainer.fit(samples, epochs=2, batch_size=10, progress=False, **options)
        return nets.digest(trainer), model.module

    alone, net = run()
    assert net.first.weight.dtype == torch.bfloat16
    assert float(net.scale) == float(torch.tensor(0.1))  # not rounded by averages
    assert run(client=client_of(2), engine="gang")[0] == alone


def test_predictions_are_torchs_and_the_module_stays_as_it_is(client: Client) -> None:
    net, samples = nets.convolutional().eval(), nets.images()
    x = samples.head(42)["x"]
    with torch.no_grad():
        expected = net(torch.tensor(x)).numpy()
    model = TorchModule(net)
    np.testing.assert_allclose(model.predict(x), expected, rtol=1e-5, atol=1e-6)
    with client.as_current():
        lazy = model.predict(samples)
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-5, atol=1e-6)
    assert not net.training
    assert model.evaluate(samples, loss=CrossEntropyLoss())["loss"] > 0


def test_frozen_parameters_stay(client: Client) -> None:
    net = nets.convolutional()
    before = net[0].weight.detach().clone()
    model = TorchModule(net).freeze("0.*")
    Trainer(model, CrossEntropyLoss(), SGD(0.1)).fit(
        nets.images(), epochs=1, batch_size=8, progress=False, client=client
    )
    assert torch.equal(net[0].weight.detach(), before)
    assert not net[0].weight.requires_grad


def test_the_limits_of_equal_bits_are_logged_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    nets.fitted(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(108, 4)), nets.images())
    assert "same bits on any number of workers of the same kind of processor" in caplog.text


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(SettingsError, match=r"wrap one of torch: daskdl.torch.TorchModule\(model"):
        Trainer(torch.nn.Linear(2, 2), MSELoss(), SGD(0.1))  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"TorchModule: expected a torch.nn.Module, found Lin"):
        TorchModule(Linear(2, 2))
    with pytest.raises(SettingsError, match=r"weight: expected a dense tensor.*lazy; call the"):
        TorchModule(torch.nn.LazyLinear(3))
    with pytest.raises(SettingsError, match=r"on the CPU, found .*meta"):
        TorchModule(torch.nn.Linear(2, 2, device="meta"))
    with pytest.raises(SettingsError, match="expected reduction='mean', found 'sum'; shards are"):
        Trainer(TorchModule(torch.nn.Linear(2, 2)), torch.nn.MSELoss(reduction="sum"), SGD(0.1))
    weighted = torch.nn.CrossEntropyLoss(weight=torch.ones(2))
    with pytest.raises(SettingsError, match=r"with class weights.*sample_weight"):
        Trainer(TorchModule(torch.nn.Linear(2, 2)), weighted, SGD(0.1))


def test_torch_is_not_imported_by_daskdl() -> None:
    code = "import sys, daskdl.train, daskdl.models, daskdl.predict; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
