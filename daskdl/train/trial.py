"""Trial: one sample through everything, so that a mistake shows before it costs time."""

from __future__ import annotations

from typing import Any

from daskdl.errors import TrainingError
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn.inputs import as_inputs
from daskdl.predict.trial import check_loss, check_metrics, check_names, naming_shapes
from daskdl.tensor import Tensor, no_grad, wants_grad
from daskdl.train.job import Job, Tools


def check_sample(job: Job, batch: dict[str, Any]) -> None:
    """Run one sample through a copy of the model, its loss with gradients, and its metrics.

    Parameters
    ----------
    job : Job
    batch : dict
        Of one sample.

    Raises
    ------
    DataError
        For samples without x or y.
    SettingsError
        For samples with weights, of which the loss or a metric does not know.
    DaskdlError
        Errors of the model itself, such as a ShapeError that names the layer.
    TrainingError
        For any other exception, for a loss that is not one number, and for one that no parameter
        changes.
    """
    check_names("Trainer.fit", batch)
    tools = job.tools()
    tools.check_weight("Trainer.fit", batch)
    x = as_inputs(batch["x"])
    with naming_shapes(tools.model, batch), thread_budget(job.threads):
        loss = tools.compare(tools.model.train()(x), batch)
        check_loss(tools, loss)
        _check_tape(tools, loss)
        loss.backward()
        with no_grad():
            check_metrics(tools, tools.model.eval()(x), batch)


def _check_tape(tools: Tools, loss: Tensor) -> None:
    if not wants_grad(loss):
        raise TrainingError(
            f"{type(tools.model).__name__}: expected a loss that depends on parameters to train, "
            "found one that does not: there are none, all are frozen, or forward left the tape, as "
            "it does by arithmetic on numpy arrays such as .data"
            "; unfreeze a layer, or use operations of daskdl.ops"
        )
