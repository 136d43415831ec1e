"""Training: the Trainer, callbacks and what a fit returns."""

from daskdl.train.callbacks import BestModel, Callback, EarlyStopping
from daskdl.train.history import History
from daskdl.train.live_plot import LivePlot
from daskdl.train.tensorboard import TensorBoard
from daskdl.train.trainer import Trainer

__all__ = [
    "BestModel",
    "Callback",
    "EarlyStopping",
    "History",
    "LivePlot",
    "TensorBoard",
    "Trainer",
]
