"""Training: the Trainer, callbacks and what a fit returns."""

from daskdl.train.callbacks.best import BestModel, EarlyStopping
from daskdl.train.callbacks.live import LivePlot, TensorBoard
from daskdl.train.fit.callback import Callback
from daskdl.train.fit.trainer import Trainer
from daskdl.train.watch.history import History

__all__ = [
    "BestModel",
    "Callback",
    "EarlyStopping",
    "History",
    "LivePlot",
    "TensorBoard",
    "Trainer",
]
