"""Trainer: fits a model to samples, on a Dask cluster or in this process."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.data import Batches, SampleSet
from daskdl.data.current import current_client
from daskdl.errors import SettingsError
from daskdl.nn import Module
from daskdl.optim import Layout, Method
from daskdl.train.callbacks import Callback
from daskdl.train.checkpoint import CheckpointFolder, Saved, check_identity
from daskdl.train.engines import check_engine, make_engine
from daskdl.train.history import History
from daskdl.train.job import Metric, Tools, pack
from daskdl.train.loop import Loop, restored_run, saved_run
from daskdl.train.progress import make_progress
from daskdl.train.settings import setting
from daskdl.train.step import State, beginning, check_sample

if TYPE_CHECKING:
    from distributed import Client


class Trainer:
    """Trains a model.

    Parameters
    ----------
    model : Module
        Changed by :meth:`fit`.
    loss : callable
        ``loss(prediction, target)``, the mean over the samples.
    optimizer : Method
    seed : int
        Of the order of samples and of the functions that draw random numbers.

    Attributes
    ----------
    history : History
        Of the last fit.
    """

    def __init__(
        self, model: Module, loss: Callable[[Any, Any], Any], optimizer: Method, seed: int = 0
    ) -> None:
        if seed < 0:
            raise SettingsError(f"Trainer: expected a seed of at least 0, found {seed!r}")
        if not isinstance(optimizer, Method):
            raise SettingsError(
                f"Trainer: optimizer: expected a Method of daskdl.optim, found {optimizer!r}"
            )
        self.model, self.loss, self.optimizer, self.seed = model, loss, optimizer, seed
        self.history = History()

    def fit(
        self,
        samples: SampleSet,
        *,
        epochs: int | None = None,
        iterations: int | None = None,
        batch_size: int = 32,
        shards: int | None = None,
        validation: SampleSet | None = None,
        metrics: Mapping[str, Metric] | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        resume: bool = True,
        client: Client | None = None,
        engine: str = "auto",
        threads: int | None = None,
        progress: bool = True,
    ) -> History:
        """Train.

        The result is the same bits on any number of workers and in this process, after a worker has
        died, and after an interruption: it is fixed by the model, the samples and their shards,
        the seed, the batch size and the thread budget.

        Parameters
        ----------
        samples : SampleSet
            Of ``x`` and ``y``. Each is seen once an epoch.
        epochs, iterations : int
            How long, one of the two.
        batch_size : int
            Samples of an iteration, over all shards.
        shards : int, optional
            Cut the samples into so many shards, each of which computes a part of every gradient;
            by default its partitions are the shards. Their number is part of what fixes the bits.
        validation : SampleSet, optional
            Its mean loss is computed after each epoch and at the end.
        metrics : mapping of name to callable, optional
            ``metric(prediction, target)`` on arrays, the mean over the samples; computed with the
            validation.
        callbacks : sequence of Callback
        checkpoint : path, optional
            Folder for checkpoints.
        checkpoint_every : int, optional
            Iterations between checkpoints; by default one is written at the end of each epoch, and
            within one every ``daskdl.checkpoint-interval``. An interruption by Ctrl-C writes one.
        resume : bool
            Go on from the newest checkpoint in the folder.
        client : distributed.Client, optional
            By default the current one; without any, the fit runs in this process.
        engine : "auto", "graph" or "gang"
            How the workers of a cluster work together, which does not show in the result: by tasks
            for every gradient and sum, or by one task a worker that speaks to the others. "auto"
            takes "graph" for one worker, and for up to 8 if the model is below 1 MB.
        threads : int, optional
            Arithmetic threads of a task; see ``daskdl.threads`` in ``dask.config``.
        progress : bool
            Show it on standard error.

        Returns
        -------
        History

        Raises
        ------
        ShapeError, DataError, SettingsError
            When something does not fit together, before any task is started.
        TrainingError
            When a loss is not finite, or for an exception in a task.
        ClusterError
            When the cluster is lost.
        CheckpointError
            When the checkpoint is another run's, or cannot be written or read.
        """
        client = _client(client)
        check_engine(engine)
        if shards is not None and shards != samples.partitions:
            samples = samples.repartition(shards)
        batch_size = _whole("batch_size", batch_size)
        threads = None if threads is None else _whole("threads", threads)
        batches = Batches(samples.lengths, batch_size)
        total = _total(epochs, iterations, len(batches))
        if checkpoint_every is not None:
            checkpoint_every = _whole("checkpoint_every", checkpoint_every)
        names = _names(validation, metrics)
        tools = Tools(
            self.model,
            self.loss,
            self.optimizer.on(Layout.of(self.model)),
            samples.functions,
            () if validation is None else validation.functions,
            tuple((metrics or {}).values()),
        )
        job = pack(tools, self.seed, _threads(client) if threads is None else threads)
        check_sample(job, samples.head(1))
        folder = None if checkpoint is None else CheckpointFolder(checkpoint)
        identity = self._identity(samples, batch_size)
        saved = self._saved(folder, identity, resume)
        if saved is not None and threads is None:
            job = replace(job, threads=int(saved.more["threads"]))
        if saved is None:
            state, self.history = beginning(self.model, tools.optimizer), History()
        else:
            state, self.history = restored_run(saved, callbacks)
            self.model.load_vector(state.weights)
        if saved is not None and (saved.more["stopped"] or state.iteration >= total):
            for callback in callbacks:
                callback.on_fit_end(self)
            return self.history

        def save(state: State, stopped: bool) -> None:
            assert folder is not None
            folder.write(saved_run(state, identity, self.history, callbacks, job.threads, stopped))

        size = self.model.vector.nbytes
        runner = make_engine(engine, client, job, samples, validation, size)
        try:
            loop = Loop(
                self,
                runner,
                batches,
                state,
                total,
                names,
                callbacks,
                make_progress(progress),
                None if folder is None else save,
                checkpoint_every,
            )
            if folder is not None and not resume:
                folder.clear()
            loop.go()
        finally:
            runner.close()
        return self.history

    def _identity(self, samples: SampleSet, batch_size: int) -> dict[str, Any]:
        return {
            "model": [[name, list(array.shape)] for name, array in self.model.state_dict().items()],
            "optimizer": type(self.optimizer).__name__,
            "seed": self.seed,
            "batch_size": batch_size,
            "shards": list(samples.lengths),
        }

    def _saved(
        self, folder: CheckpointFolder | None, identity: dict[str, Any], resume: bool
    ) -> Saved | None:
        if folder is None:
            return None
        saved = folder.read() if resume else None
        if saved is not None:
            check_identity(Path(folder.path), saved.identity, identity)
        return saved


def _whole(name: str, value: Any) -> int:
    """Return a whole number of at least 1 as Python's own, which a checkpoint can hold."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise SettingsError(
            f"Trainer.fit, {name}: expected a whole number of at least 1, found {value!r}"
        )
    return number


def _client(client: Client | None) -> Client | None:
    client = current_client() if client is None else client
    if client is not None and client.asynchronous:
        raise SettingsError(
            "Trainer.fit: expected a synchronous Client, found an asynchronous one; call fit in a "
            "thread with a client made without asynchronous=True"
        )
    return client


def _total(epochs: int | None, iterations: int | None, per_epoch: int) -> int:
    if (epochs is None) == (iterations is None):
        raise SettingsError(
            f"Trainer.fit: expected either epochs or iterations, found epochs={epochs!r} and "
            f"iterations={iterations!r}"
        )
    total = iterations if iterations is not None else (epochs or 0) * per_epoch
    if total < 1:
        raise SettingsError(
            f"Trainer.fit: expected at least 1 epoch or iteration, found epochs={epochs!r} and "
            f"iterations={iterations!r}"
        )
    return total


def _names(validation: SampleSet | None, metrics: Mapping[str, Metric] | None) -> list[str]:
    if validation is None:
        if metrics:
            raise SettingsError(
                f"Trainer.fit: expected validation samples to compute {sorted(metrics)} on, "
                "found none"
            )
        return []
    return ["val_loss", *(f"val_{name}" for name in metrics or ())]


def _threads(client: Client | None) -> int:
    asked = setting("threads")
    if asked is not None:
        return int(asked)
    if client is None:
        return 1
    from daskdl.train.channel import Cluster

    return min(Cluster(client).workers("start of the fit").values())
