"""A user's changes of a wrapped torch module take effect, or are refused."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from torch.nn.utils import parametrizations, prune  # noqa: E402

from daskdl.data import SampleSet  # noqa: E402
from daskdl.errors import DataError, SettingsError, TrainingError  # noqa: E402
from daskdl.optim import SGD  # noqa: E402
from daskdl.tensor import Tensor  # noqa: E402
from daskdl.torch import TorchLoss, TorchModule  # noqa: E402
from daskdl.torch.module import logger  # noqa: E402
from daskdl.train import Trainer  # noqa: E402

X = np.random.default_rng(0).normal(size=(24, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def net(norm: bool = True) -> Any:
    torch.manual_seed(0)
    inner = [torch.nn.BatchNorm1d(8)] if norm else []
    return torch.nn.Sequential(
        torch.nn.Linear(6, 8), *inner, torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )


def fit(
    module: Any, loss: Any = None, x: Any = X, y: Any = Y, parts: int = 1, **options: Any
) -> Any:
    model = module if isinstance(module, TorchModule) else TorchModule(module)
    samples = SampleSet.from_arrays(x=x, y=y, partitions=parts)
    trainer = Trainer(model, loss or torch.nn.CrossEntropyLoss(), SGD(0.1), **options)
    trainer.fit(samples, epochs=2, batch_size=len(samples), progress=False, client=False)
    return model


def by_torch(module: Any, x: Any = X) -> Any:
    return module.eval()(torch.from_numpy(x)).detach().numpy()


def test_a_head_of_another_shape_and_parameters_frozen_by_the_model() -> None:
    module = net()
    model = TorchModule(module)
    model.predict(X)
    module[3] = torch.nn.Linear(8, 5)
    np.testing.assert_allclose(model.predict(X), by_torch(module), atol=1e-6)
    assert {name: tuple(v.shape) for name, v in model.state_dict().items()} == {
        name: tuple(v.shape) for name, v in module.state_dict().items()
    }
    model.freeze("0.weight")
    frozen = module[0].weight.clone()
    fit(model)
    assert torch.equal(module[0].weight, frozen)


def new_head(module: Any) -> None:
    torch.manual_seed(1)
    module[3] = torch.nn.Linear(8, 2)


def trained_by_torch(module: Any) -> None:
    """Do what a fit of two epochs does; batch norm stays in eval() if the user put it there."""
    wanted = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(wanted, lr=0.1)
    evaluating = not module[1].training
    module.train()
    module[1].train(not evaluating)
    for _ in range(2):
        optimizer.zero_grad()
        torch.nn.CrossEntropyLoss()(module(torch.from_numpy(X)), torch.from_numpy(Y)).backward()
        optimizer.step()


#: Changes by users of a module that is wrapped already.
CHANGES: dict[str, Callable[[Any], Any]] = {
    "freeze": lambda m: m[0].requires_grad_(False),
    "thaw": lambda m: m[0].requires_grad_(True),
    "eval": lambda m: m[1].eval(),
    "train": lambda m: m[1].train(),
    "statistics": lambda m: m[1].running_mean.add_(0.5),
    "weights": lambda m: m[0].weight.data.mul_(1.5),
    "memory": lambda m: setattr(m[0].weight, "data", m[0].weight.data * 0.5),
    "load": lambda m: m.load_state_dict({name: v * 0.75 for name, v in m.state_dict().items()}),
    "head": new_head,
}


@pytest.mark.slow
@settings(max_examples=12, phases=[Phase.generate])
@given(st.lists(st.sampled_from([*CHANGES, "fit", "predict"]), min_size=1, max_size=6))
def test_changes_of_the_module_take_effect_in_any_order(changes: list[str]) -> None:
    module, twin = net(), net()
    model = TorchModule(module)
    for change in [*changes, "fit"]:
        if change == "fit":
            fit(model)
            trained_by_torch(twin)
        elif change == "predict":
            model.predict(X)
        else:
            CHANGES[change](module)
            CHANGES[change](twin)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(module.state_dict()[name], value, atol=1e-5, err_msg=name)
    predicted = model.predict(X)
    np.testing.assert_allclose(predicted, by_torch(copy.deepcopy(twin)), atol=1e-5)


def test_a_forward_that_writes_into_its_input_changes_no_sample() -> None:
    class Scales(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            x *= 2
            return super().forward(x)

    torch.manual_seed(0)
    module, x = Scales(6, 2), X.copy()
    expected = by_torch(module, X.copy())
    np.testing.assert_allclose(TorchModule(module).predict(x), expected, atol=1e-6)
    fit(module, x=x)
    np.testing.assert_array_equal(x, X)


def test_buffers_that_no_pass_changes_keep_their_bits() -> None:
    class Wide(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(6, 2)
            self.register_buffer("start", torch.tensor(1_700_000_001.25, dtype=torch.float64))
            self.register_buffer("code", torch.tensor([33_554_433, 2**40 + 3]))

        def forward(self, x: Any) -> Any:
            return self.layer(x) + (self.code % 2).sum() + (self.start - 1_700_000_000).float()

    module = Wide()
    expected = by_torch(copy.deepcopy(module))
    np.testing.assert_allclose(TorchModule(module).predict(X), expected, atol=1e-6)
    fit(module)
    assert module.start.item() == 1_700_000_001.25
    assert module.code.tolist() == [33_554_433, 2**40 + 3]
    assert module.start.dtype == torch.float64


KINDS: dict[str, Callable[[Any], Any]] = {
    "weight_norm": parametrizations.weight_norm,
    "spectral_norm": parametrizations.spectral_norm,
    "orthogonal": parametrizations.orthogonal,
    "old weight_norm": torch.nn.utils.weight_norm,
    "pruned": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_parametrized_modules_are_trained_as_by_torch(kind: str) -> None:
    def made() -> Any:
        module = net(norm=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KINDS[kind](module[0])
        return module

    other, module = made(), made()
    method = torch.optim.SGD(other.parameters(), 0.1)
    for _ in range(2):
        method.zero_grad()
        torch.nn.functional.cross_entropy(
            other(torch.from_numpy(X)), torch.from_numpy(Y)
        ).backward()
        method.step()
    model = fit(module)
    np.testing.assert_allclose(model.predict(X), by_torch(other), atol=1e-4)
    np.testing.assert_allclose(by_torch(model.module), by_torch(other), atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_modules_of_another_dtype_take_float32(dtype: Any) -> None:
    module = net(norm=False).to(dtype)
    expected = module(torch.from_numpy(X).to(dtype)).detach().float().numpy()
    np.testing.assert_allclose(TorchModule(module).predict(X), expected, atol=1e-6)
    before = module[0].weight.clone()
    fit(module)
    assert not torch.equal(module[0].weight, before)
    assert module[0].weight.dtype == dtype


def test_bfloat16_is_autocast() -> None:
    module = net(norm=False).eval()
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        expected = module(torch.from_numpy(X)).float().numpy()
    np.testing.assert_array_equal(TorchModule(module).predict(X, precision="bf16"), expected)
    exact, rounded = copy.deepcopy(module), copy.deepcopy(module)
    fit(exact), fit(rounded, precision="bf16")
    assert not torch.equal(exact[0].weight, rounded[0].weight)
    np.testing.assert_allclose(exact[0].weight.detach(), rounded[0].weight.detach(), atol=0.02)


entropy = torch.nn.functional.cross_entropy
#: Losses, and whether each is a mean over samples; class 2 is rare, and comes last or anywhere.
LOSSES: dict[str, tuple[Any, bool]] = {
    "mean": (entropy, True),
    "tokens": (lambda p, t: entropy(p.repeat(3, 1), t.repeat(3)), True),
    "sum": (lambda p, t: entropy(p, t, reduction="sum"), False),
    "weighted": (lambda p, t: entropy(p, t, torch.tensor([1.0, 9.0, 2.0])), False),
    "ignored": (lambda p, t: entropy(p, t, ignore_index=2), False),
    "root": (lambda p, t: entropy(p, t).sqrt(), False),
    "hardest": (
        lambda p, t: entropy(p, t, reduction="none").topk(max(len(t) // 4, 1))[0].mean(),
        False,
    ),
    "dice": (lambda p, t: 1 - (p.softmax(1)[:, 1] * t).sum() / (1 + t.sum()), False),
}


@pytest.mark.slow
@settings(max_examples=12, phases=[Phase.generate])
@given(
    st.sampled_from(sorted(LOSSES)), st.integers(0, 9), st.sampled_from([0.02, 0.3]),
    st.booleans(), st.integers(2, 4),
)  # fmt: skip
def test_a_loss_is_the_same_on_shards_or_refused_before_the_first_step(
    name: str, seed: int, share: float, in_order: bool, parts: int
) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=(96, 6)).astype(np.float32)
    y = random.choice(3, 96, p=[0.6 - share, 0.4, share])
    y[:3] = 0, 1, 2
    y = np.sort(y) if in_order else random.permutation(y)
    loss, mean = TorchLoss(LOSSES[name][0]), LOSSES[name][1]
    torch.manual_seed(seed)
    start = torch.nn.Linear(6, 3)
    whole, cut = copy.deepcopy(start), copy.deepcopy(start)
    if mean:
        fit(whole, loss, x, y)
        fit(cut, loss, x, y, parts=parts)
        np.testing.assert_allclose(cut.weight.detach(), whole.weight.detach(), atol=1e-5)
        return
    with pytest.raises(SettingsError, match=r"expected a mean over samples.*shards=1"):
        fit(cut, loss, x, y, parts=parts)
    np.testing.assert_array_equal(cut.weight.detach(), start.weight.detach())


def test_a_loss_that_is_no_mean_over_samples_is_refused_with_shards() -> None:
    late = np.tile(Y, 3)
    late[-1] = -100  # in the last sample only
    with pytest.raises(SettingsError, match=r"expected a mean over samples.*shards=1"):
        fit(torch.nn.Linear(6, 2), None, np.tile(X, (3, 1)), late, parts=2)
    alike = np.tile(X[:16], (2, 1)), np.tile(np.eye(2, dtype="f4")[Y[:16]], (2, 1))
    for name in ("root", "hardest"):
        with pytest.raises(SettingsError, match=r"expected a mean over samples.*shards=1"):
            fit(torch.nn.Linear(6, 2), TorchLoss(LOSSES[name][0]), *alike, parts=2)
    fit(torch.nn.Linear(6, 2), torch.nn.KLDivLoss(reduction="batchmean"), y=np.eye(2)[Y], parts=2)
    for function in (LOSSES["mean"][0], LOSSES["dice"][0]):  # by torch, but inside a lambda
        with pytest.raises(TrainingError, match=r"TorchLoss\(function\) makes a loss"):
            fit(torch.nn.Linear(6, 2), lambda p, t, f=function: f(p, t))


def test_a_share_of_one_sample_under_batch_norm_is_refused_before_the_first_step() -> None:
    with pytest.raises(SettingsError, match=r"batch_size and shards.*found 1 in some"):
        fit(net(), x=X, y=Y, parts=24)
    model = TorchModule(
        torch.nn.Sequential(net()[0], torch.nn.BatchNorm1d(8, track_running_stats=False))
    )
    np.testing.assert_allclose(model.predict(X), by_torch(model.module), atol=1e-6)


def test_mappings_leave_out_values_that_are_no_tensors() -> None:
    class Two(torch.nn.Module):
        def __init__(self, **more: Any) -> None:
            super().__init__()
            self.layer, self.more = torch.nn.Linear(6, 2), more

        def forward(self, x: Any) -> Any:
            return {"logits": self.layer(x), **self.more}

    for more in ({}, {"loss": None}, {"inner": {}}):
        fit(Two(**more), {"logits": torch.nn.CrossEntropyLoss()})


def test_parameters_named_as_attributes_of_modules_are_refused() -> None:
    for name in ("flat", "predict", "_names"):
        module = torch.nn.Module()
        module.register_parameter(name, torch.nn.Parameter(torch.ones(3)))
        with pytest.raises(SettingsError, match=f"names of their own, found '{name}'.*0.{name}"):
            TorchModule(module)


@pytest.mark.parametrize(
    ("start", "step", "named"),
    [
        (torch.tensor(0), lambda n, x: n + len(x), True),
        (torch.zeros(2), lambda n, x: n + torch.bincount(1 * (x[:, 0] > 0)), True),
        (torch.full((6,), -torch.inf), lambda n, x: torch.maximum(n, x.amax(0)), True),
        (torch.zeros(6, dtype=torch.int64), lambda n, x: (9 * x.abs().amax(0)).long(), True),
        (torch.tensor(3), lambda n, x: n + 1, False),
        (torch.tensor(3), lambda n, x: n - 1, True),
        (torch.tensor(0.25), lambda n, x: n + 1, False),
        (torch.zeros(6), lambda n, x: 0.9 * n + 0.1 * x.mean(0), True),
        (torch.zeros(6).double(), lambda n, x: torch.maximum(n, x.amax(0).double()), True),
        (torch.full((6,), 9.5), lambda n, x: torch.minimum(n, x.amin(0)), True),
        (torch.zeros(6), lambda n, x: n + 0 * len(x), False),
    ],
)
def test_a_users_buffers_that_change_are_named(
    monkeypatch: pytest.MonkeyPatch, start: Any, step: Callable[..., Any], named: bool
) -> None:
    class Counting(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            self.seen = step(self.seen, x.detach())
            return super().forward(x)

    logged: list[str] = []
    monkeypatch.setattr(logger, "warning", lambda text, *values: logged.append(text % values))
    module = parametrizations.spectral_norm(Counting(6, 2))  # whose own buffers change, too
    module.register_buffer("seen", start)
    fit(module)
    changed = [line for line in logged if "changes the buffer" in line]
    assert {line.split("buffer ")[1][:5] for line in changed} == ({"seen:"} if named else set())


def test_masked_elements_are_nan_or_refused() -> None:
    loss, mask = TorchLoss(torch.nn.MSELoss()), np.arange(6) % 2 == 0
    floats, ids = np.ma.masked_array(X[0], mask), np.ma.masked_array(np.arange(6), mask)
    for prediction, target in ((X[0], floats), (floats, X[0])):
        assert np.isnan(float(loss(prediction, target)))
    with pytest.raises(DataError, match="no masked elements of int64, which has no NaN, found 3"):
        loss(X[0], ids)
    np.testing.assert_array_equal(np.isnan(Tensor(floats).data), mask)
    with pytest.raises(DataError, match="Tensor: expected no masked elements of int64"):
        Tensor(ids)
    assert np.isnan(TorchModule(torch.nn.Linear(6, 2))(floats[np.newaxis]).data).all()


@pytest.mark.parametrize("bag", [False, True])
def test_gradients_scaled_by_frequency_are_refused(bag: bool) -> None:
    kind = torch.nn.EmbeddingBag if bag else torch.nn.Embedding
    module = torch.nn.Sequential(kind(9, 2, scale_grad_by_freq=True), torch.nn.Flatten())
    with pytest.raises(SettingsError, match="0: expected scale_grad_by_freq=False"):
        fit(module, x=np.arange(24).reshape(24, 1) % 9)


def test_attributes_that_forward_changes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            self.calls = self.calls + 1
            self.total += 1
            self.last = x.detach()
            self.bias.data += 1
            return super().forward(x)

    logged: list[str] = []
    monkeypatch.setattr(logger, "warning", lambda text, *values: logged.append(text % values))
    module = Counting(6, 2)
    module.calls, module.last = 0, torch.zeros(1)
    module.register_buffer("total", torch.zeros(1), persistent=False)
    fit(module)
    assert "forward changes calls, last, total, bias, which is no buffer" in " ".join(logged)
    logged.clear()
    fit(prune.identity(torch.nn.Linear(6, 2), "weight"))  # which computes its weight anew
    assert "forward changes" not in " ".join(logged)


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_on_gradients_are_refused_by_a_fit(kind: str) -> None:
    module = net()
    getattr(module[0].weight, kind)(lambda _: None)
    TorchModule(module).predict(X)
    with pytest.raises(SettingsError, match=r"0\.weight: expected no hook on a parameter's grad"):
        fit(module)


def test_several_threads_predict_with_one_module() -> None:
    model, results = TorchModule(net()), {}
    expected = model.predict(X)

    def work(i: int) -> None:
        results[i] = model.predict(X)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for result in results.values():
        np.testing.assert_array_equal(result, expected)
