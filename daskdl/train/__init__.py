"""Training: the Trainer, callbacks and what a fit returns."""

from daskdl.train.fit.trainer import Trainer
from daskdl.train.watch.callbacks import BestModel, Callback, EarlyStopping
from daskdl.train.watch.history import History
from daskdl.train.watch.plot import LivePlot
from daskdl.train.watch.tensorboard import TensorBoard

__all__ = [
    "BestModel",
    "Callback",
    "EarlyStopping",
    "History",
    "LivePlot",
    "TensorBoard",
    "Trainer",
]
