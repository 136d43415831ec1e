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
from daskdl.predict.measures import Measures
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
        The model; :meth:`fit` changes it.
    loss : callable, or a list or mapping of them
        ``loss(prediction, target)``, the mean over the samples. If samples have ``sample_weight``,
        it is an argument too, by this name. For a model with several results: a list or mapping
        with a loss for each, or :class:`~daskdl.nn.MultiLoss` with weights.
    optimizer : Method
    seed : int
        Seed of the order of samples and of all random numbers.
    metrics : sequence of Metric, or mapping of names to them
        Computed of every training batch, and of all samples of every validation together. By
        default a metric is named after its class, as in ``mean_absolute_error``. For a model with
        several results, a list under each result's name: ``{"price": [MeanAbsoluteError()]}``.
    precision : "float32" or "bf16"
        "bf16" rounds the factors of products to bfloat16 in convolutions, affine maps, recurrent
        layers and attention, in training, validation and evaluation. Sums, weights and everything
        else stay float32. The bits depend on it, but not on the processor.

    Attributes
    ----------
    history : History
        History of the last fit.

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

        The result has the same bits on any number of workers and in this process, after a worker
        has died, and after an interruption. It depends on the model, the samples and their shards,
        the seed, the batch size and the wire format. In float32 it is the same on all processors
        with AVX2 and FMA and for any number of threads, unless MKL multiplies; see
        docs/guarantees.md.

        Parameters
        ----------
        samples : SampleSet, arrays (N, ...), of Dask too, or a DataFrame of pandas or Dask
            Samples of ``x`` and ``y``, and ``sample_weight`` if they count differently. An epoch
            draws each sample once. Several arrays of ``x`` are the model's arguments, in order or
            by name.
        y : array (N, ...), or for a DataFrame the name of a column, optional
            The targets, for arrays or a DataFrame; a SampleSet has its own.
        epochs, iterations : int
            Length of the fit; give one of the two.
        batch_size : int
            Samples of an iteration, over all shards.
        shards : int, optional
            Number of shards; each computes a part of every gradient. By default the partitions are
            the shards. The bits depend on their number.
        validation : SampleSet, a pair (X, y), or a DataFrame with the column ``y``, optional
            Samples whose mean loss and metrics are computed after each epoch and at the end.
        callbacks : sequence of Callback
        checkpoint : path, optional
            Folder for checkpoints.
        checkpoint_every : int, optional
            Iterations between checkpoints; by default one is written at the end of each epoch, and
            within one every ``daskdl.checkpoint-interval``. An interruption by Ctrl-C writes one.
        resume : bool
            Whether to resume from the newest checkpoint in the folder.
        client : distributed.Client, optional
            By default the current client; without one, or with False, the fit runs in this process.
            With an asynchronous client this returns an awaitable, see :meth:`fit_async`.
        engine : "auto", "graph" or "gang"
            How the workers of a cluster work together; the result is the same. "graph": a task for
            every gradient and sum. "gang": one task a worker, which exchanges messages with the
            others. "auto" takes "gang", which is faster; for an adaptive cluster, which grows with
            the number of tasks, it takes "graph".
        threads : int, optional
            Arithmetic threads of a task, or of a shard. By default a worker's threads; in this
            process the cores (or ``OMP_NUM_THREADS``) divided among the shards. See
            ``daskdl.threads`` in ``dask.config``.
        wire : "float32" or "bfloat16"
            "bfloat16" rounds gradients before each sum, and weights before each gradient: the gang
            engine then sends half the bytes. The bits depend on it, in every engine; sums, the
            update and the result stay float32.
        progress : bool
            Whether to show progress on standard error.
        shuffle : "global" or "local"
            Which samples may meet in a batch. "global": any samples. Each shard gives its share of
            every batch, drawn anew in each epoch from all its samples; blocks of streams are
            distributed to the shards anew. "local", for shards larger than memory: samples of the
            blocks that a shard holds at a time; it reads its own blocks in a new order each epoch.
            Samples that are not streams become ``samples.stream()``. See
            :meth:`daskdl.data.SampleSet.stream`.
        training_metrics : bool
            Whether metrics are computed of training batches too, from the predictions of the
            gradient.

        Returns
        -------
        History

        Raises
        ------
        ShapeError, DataError, SettingsError
            When arguments do not fit together, before any task is started.
        TrainingError
            When a loss is not finite, or for an exception in a task.
        ClusterError
            When the cluster is lost.
        CheckpointError
            When the checkpoint belongs to another run, or cannot be written or read.
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
        """Train as :meth:`fit`, with the same bits, without blocking the event loop.

        The fit and its callbacks run in another thread, with a synchronous client of the same
        scheduler. If the task that awaits this is cancelled, the fit ends after the current group
        of iterations, with a checkpoint if there is a folder for it, as after Ctrl-C.

        Parameters
        ----------
        samples, y :
        client : distributed.Client, optional
            Asynchronous or not; by default the current client, else this process.
        **options :
            Options of :meth:`fit`.
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

        A partition is freed when it has passed through the model, so that memory does not grow with
        the number of partitions.

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
            Measures(self.loss, tuple(self.metrics.values())),
            as_samples("Trainer.evaluate", samples, y, self.model),
            batch_size=batch_size,
            threads=threads,
            client=client,
            seed=self.seed,
            precision=self.computed_in or self.precision,
        )
        return dict(zip(["loss", *self.metrics], values, strict=True))
