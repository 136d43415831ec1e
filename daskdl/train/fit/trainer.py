"""Trainer: fits a model to samples, on a Dask cluster or in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from daskdl.cluster.current import awaitable, current_client, in_thread
from daskdl.kernels.runtime.precision import check_precision
from daskdl.metrics import Metric
from daskdl.names import named
from daskdl.nn import Module
from daskdl.optim import Method
from daskdl.predict.arguments import as_samples, metrics_by_name
from daskdl.predict.evaluation import evaluate_samples
from daskdl.predict.measures import LossAndMetrics
from daskdl.train.fit.callback import Callback
from daskdl.train.fit.options import FitOptions, as_loss, check_trainer
from daskdl.train.fit.steps import prepare, run
from daskdl.train.watch.display import of_trainer
from daskdl.train.watch.history import COLUMNS, EPOCH, History

if TYPE_CHECKING:
    from distributed import Client


class Trainer:
    """Trains a model.

    Parameters
    ----------
    model : Module
        Changed by :meth:`fit`.
    loss : callable, or a list or mapping of them
        ``loss(prediction, target)``, the mean over the samples. If these have ``sample_weight`` it
        is given that too, by this name. Of a model with several results a list or mapping of
        losses, one each, or :class:`~daskdl.nn.MultiLoss` with a weight for each.
    optimizer : Method
    seed : int
        Of the order of samples and of the functions that draw random numbers.
    metrics : sequence of Metric, or mapping of names to them
        Computed of every training batch, and with every validation, of all its samples together.
        Without a name a metric has that of its class, as in ``mean_absolute_error``. A list under
        the name of one of several results is of this one: ``{"price": [MeanAbsoluteError()]}``.
    precision : "float32" or "bf16"
        "bf16" rounds what is multiplied in convolutions, affine maps, recurrent layers and
        attention to bfloat16, in training, validation and evaluation; sums, weights and all else
        stay float32. It is part of what fixes the bits, which are the same on any processor.

    Attributes
    ----------
    history : History
        Of the last fit.

    Examples
    --------
    >>> from daskdl.data import SampleSet
    >>> from daskdl.optim import SGD
    >>> x = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    >>> samples = SampleSet.from_arrays(x=x, y=x @ np.array([[2.0], [-1.0]], np.float32))
    >>> trainer = Trainer(nn.Linear(2, 1), nn.MSELoss(), SGD(0.1))
    >>> history = trainer.fit(samples, epochs=20, batch_size=16, progress=False)
    >>> trainer.model.weight.data.round(2)
    array([[ 2., -1.]], dtype=float32)
    """

    @named
    def __init__(
        self,
        model: Module,
        loss: Callable[..., Any] | Sequence[Any] | Mapping[str, Any],
        optimizer: Method,
        seed: int = 0,
        metrics: Sequence[Metric] | Mapping[str, Metric] = (),
        precision: str = "float32",
    ) -> None:
        check_precision("Trainer", precision)
        self.precision = precision
        #: The precision of the latest fit, with its order of sums, which evaluations keep to.
        self.computed_in: str | None = None
        check_trainer(model, loss, optimizer, seed)
        self.model, self.loss, self.optimizer, self.seed = model, as_loss(loss), optimizer, seed
        self.metrics = metrics_by_name("Trainer", metrics, (*COLUMNS, *EPOCH))
        self.history = History()

    def __repr__(self) -> str:
        size = sum(parameter.data.size for parameter in self.model.parameters())
        model = f"{type(self.model).__name__} of {size:,} parameters"
        return f"Trainer({model}, {self.loss!r}, {self.optimizer!r})"

    def _repr_html_(self) -> str:
        return of_trainer(self)

    @named
    @awaitable
    def fit(
        self,
        samples: Any,
        y: Any = None,
        *,
        epochs: int | None = None,
        iterations: int | None = None,
        batch_size: int = 32,
        shards: int | None = None,
        validation: Any = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        resume: bool = True,
        client: Client | None = None,
        engine: str = "auto",
        threads: int | None = None,
        wire: str = "float32",
        progress: bool = True,
        shuffle: str = "global",
        training_metrics: bool = True,
    ) -> History:
        """Train.

        The result is the same bits on any number of workers and in this process, after a worker has
        died, and after an interruption: it is fixed by the model, the samples and their shards,
        the seed, the batch size and the wire format. In float32 it is the same on all processors
        with AVX2 and FMA and for any number of threads, unless MKL multiplies; see
        docs/guarantees.md.

        Parameters
        ----------
        samples : SampleSet, arrays (N, ...), of Dask too, or a DataFrame of pandas or Dask
            Of ``x`` and ``y``, and ``sample_weight`` if they do not all count the same. Each is
            seen once an epoch. Several arrays of ``x`` are given to the model one by one, or by
            their names.
        y : array (N, ...), or for a DataFrame the name of a column, optional
            The targets, with arrays or a DataFrame; a SampleSet has its own.
        epochs, iterations : int
            How long, one of the two.
        batch_size : int
            Samples of an iteration, over all shards.
        shards : int, optional
            Cut the samples into so many shards, each of which computes a part of every gradient;
            by default its partitions are the shards. Their number is part of what fixes the bits.
        validation : SampleSet, a pair (X, y), or a DataFrame with the column ``y``, optional
            Its mean loss and the metrics are computed after each epoch and at the end.
        callbacks : sequence of Callback
        checkpoint : path, optional
            Folder for checkpoints.
        checkpoint_every : int, optional
            Iterations between checkpoints; by default one is written at the end of each epoch, and
            within one every ``daskdl.checkpoint-interval``. An interruption by Ctrl-C writes one.
        resume : bool
            Go on from the newest checkpoint in the folder.
        client : distributed.Client, optional
            By default the current one; without any, or with False, the fit runs in this process.
            With an asynchronous client this returns an awaitable, see :meth:`fit_async`.
        engine : "auto", "graph" or "gang"
            How the workers of a cluster work together, which does not show in the result: by tasks
            for every gradient and sum, or by one task a worker that speaks to the others. "auto"
            takes "gang", which is faster on any number of workers; but "graph" with a client made
            of an adaptive cluster, which grows with the number of tasks.
        threads : int, optional
            Arithmetic threads of a task, or of a shard; by default those of a worker, and in this
            process the cores shared out to the shards (``OMP_NUM_THREADS`` of them, if that is
            set). See ``daskdl.threads`` in ``dask.config``.
        wire : "float32" or "bfloat16"
            "bfloat16" rounds gradients before each sum, and weights before each gradient: the gang
            engine then sends half the bytes. It is part of what fixes the bits, in every engine;
            sums, the update and what is returned stay float32.
        progress : bool
            Show it on standard error.
        shuffle : "global" or "local"
            What may meet in a batch. "global": in each epoch any samples of all shards, drawn anew;
            each shard gives its share of every batch, which is mixed out of all that it has, and
            the blocks of streams are dealt out to the shards anew. "local": of a shard only what it
            holds at a time, blocks of its own that it reads in a new order each epoch, for shards
            larger than memory; samples that are no streams become ``samples.stream()``. See
            :meth:`daskdl.data.SampleSet.stream`.
        training_metrics : bool
            Whether metrics are computed of training batches too, from the predictions that the
            gradient is made of.

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
        sample_set = as_samples("Trainer.fit", samples, y, self.model)
        options = FitOptions(
            epochs, iterations, batch_size, shards, validation, callbacks, checkpoint,
            checkpoint_every, resume, engine, threads, wire, progress, shuffle, training_metrics,
        )  # fmt: skip
        run(prepare(self, sample_set, y, options, client))
        return self.history

    async def fit_async(
        self, samples: Any, y: Any = None, *, client: Client | None = None, **options: Any
    ) -> History:
        """Train as :meth:`fit` does, to the same bits, while the event loop goes on.

        The fit, and with it every callback, runs in a thread of its own with a synchronous client
        of the same scheduler, so that nothing of it blocks the loop. If the task that awaits this
        is cancelled, the fit ends after the group of iterations that is under way, with a
        checkpoint if there is a folder for it, as after Ctrl-C.

        Parameters
        ----------
        samples, y :
        client : distributed.Client, optional
            Asynchronous or not; by default the current one, and without any this process.
        **options :
            Those of :meth:`fit`.
        """
        client = current_client(asynchronous=True) if client is None else client
        return await in_thread(self.fit, samples, y, client=client, **options)

    @named
    @awaitable
    def evaluate(
        self,
        samples: Any,
        y: Any = None,
        *,
        batch_size: int = 32,
        client: Client | None = None,
        threads: int | None = None,
    ) -> dict[str, float]:
        """Return the model's mean loss over samples, and the metrics, by name.

        No partition is held longer than it takes to pass it through the model, so that memory does
        not grow with their number.

        Parameters
        ----------
        samples, y :
            As in :meth:`fit`.
        batch_size : int
            Samples that a worker passes through the model at a time.
        client, threads :
            As in :meth:`fit`.
        """
        values = evaluate_samples(
            "Trainer.evaluate",
            self.model,
            LossAndMetrics(self.loss, tuple(self.metrics.values())),
            as_samples("Trainer.evaluate", samples, y, self.model),
            batch_size=batch_size,
            threads=threads,
            client=client,
            seed=self.seed,
            precision=self.computed_in or self.precision,
        )
        return dict(zip(["loss", *self.metrics], values, strict=True))
