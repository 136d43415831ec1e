"""Errors about names of other libraries name ours."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from daskdl import nn
from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.metrics import ROCAUC
from daskdl.names import nearest
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD, Adam
from daskdl.optim.schedules import Cosine, OneCycle, Step, Warmup
from daskdl.train import Trainer

SAMPLES = SampleSet.from_arrays(x=np.zeros((4, 2), np.float32), y=np.zeros((4, 1), np.float32))


def trainer() -> Trainer:
    return Trainer(Linear(2, 1), MSELoss(), SGD(0.1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Adam(lr=1e-3), "Adam: expected learning_rate=, as it is called here, found lr="),
        (lambda: Adam(1e-3, betas=(0.9, 0.99)), "Adam: expected beta1=, as it .* found betas="),
        (lambda: Adam(1e-3, eps=1e-7), "Adam: expected epsilon=, .* found eps="),
        (lambda: OneCycle(0.1, total=100), "OneCycle: expected over=, .* found total="),
        (lambda: Cosine(0.1, T_max=100), "Cosine: expected over=, .* found T_max="),
        (lambda: Step(0.1, step_size=3), "Step: expected every=, .* found step_size="),
        (lambda: Warmup(lr=0.1), "Warmup: expected arguments such as .*, found lr="),
        (lambda: Linear(3, units=4), "Linear: expected out_features=, .* found units="),
        (lambda: nn.Conv2d(3, filters=8), "Conv2d: expected out_channels=, .* found filters="),
        (lambda: nn.Embedding(num_embeddings=9), "Embedding: expected rows=, .* num_embeddings="),
        (lambda: nn.Dropout(p=0.5), "Dropout: expected rate=, .* found p="),
        (lambda: ROCAUC(binz=3), "ROCAUC: expected arguments such as bins, found binz="),
        (lambda: trainer().fit(SAMPLES, epoch=1), "Trainer.fit: expected epochs=, .* found epoch="),
        (
            lambda: trainer().fit(SAMPLES, epochs=1, validation_data=SAMPLES),
            "Trainer.fit: expected validation=, .* found validation_data=",
        ),
        (
            lambda: trainer().fit(SAMPLES, epochs=1, quick=True),
            r"Trainer.fit: expected arguments such as (\w+, ){4}\w+, found quick=",
        ),
        (
            lambda: Trainer(Linear(2, 1), criterion=MSELoss(), optimizer=SGD(0.1)),
            "Trainer: expected loss=, .* found criterion=",
        ),
        (
            lambda: Trainer(Linear(2, 1), MSELoss(), SGD(0.1), callbacks=[]),
            "Trainer: expected arguments such as .*, found callbacks=; give callbacks= to .*fit$",
        ),
        (
            lambda: Trainer(Linear(2, 1), MSELoss(), SGD(0.1), checkpoint_dir="run"),
            "found checkpoint_dir=; give checkpoint= to Trainer.fit",
        ),
        (
            lambda: Trainer(Linear(2, 1), MSELoss(), SGD(0.1), lr=0.1),
            r"found lr=; give learning_rate= to the optimizer, such as SGD\(learning_rate=",
        ),
        (
            lambda: trainer().fit(SAMPLES, epochs=1, metrics=[]),
            "Trainer.fit: .*, found metrics=; give metrics= to Trainer$",
        ),
        (lambda: trainer().evaluate(SAMPLES, bs=2), "Trainer.evaluate: expected batch_size=, "),
        (lambda: trainer().fit(SAMPLES, 3), r"none with a SampleSet, .* \(epochs=3 is how often"),
        (
            lambda: trainer().history["losss"],
            r"History: expected a column such as 'loss', ",
        ),
        (
            lambda: trainer().model.freeze("wait"),
            r"such as 'weight', 'bias', found 'wait'",
        ),
    ],
)
def test_a_name_of_others_is_answered_with_ours(call, message):
    with pytest.raises(SettingsError, match=message):
        call()


def test_a_users_own_class_raises_pythons_error():
    class Own(nn.Module):
        def __init__(self, width: int) -> None:
            self.width = width

    with pytest.raises(TypeError, match="unexpected keyword argument 'widht'"):
        Own(widht=3)


def test_signatures_list_our_arguments():
    assert next(iter(inspect.signature(Adam).parameters)) == "learning_rate"
    assert "epochs" in inspect.signature(Trainer.fit).parameters


def test_nearest_names_are_five_at_most_and_none_is_private():
    near = nearest("Conv", nn.Module.registry)
    assert len(near) == 5
    assert not [name for name in near if name.startswith("_")]
    assert near[0].startswith("Conv")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda m: m.save("m.pt"), r"Linear: .* found save; what does that here is daskdl\.save"),
        (lambda m: m.fit(1, 2), r"found fit; .* Trainer\(model, loss, optimizer\)\.fit"),
        (lambda m: m.cuda(), "found cuda; what does that here is nothing"),
        (lambda m: m.weigth, "^'Linear' object has no attribute 'weigth'"),
    ],
)
def test_a_method_of_others_is_answered_with_ours(use, message):
    with pytest.raises(AttributeError, match=message):
        use(Linear(2, 1))
    assert not hasattr(Linear(2, 1), "save")


def test_an_error_in_a_users_property_stays_what_it_is():
    class Mine(Linear):
        @property
        def middle(self):
            return self.absent

    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = Mine(2, 1).middle
