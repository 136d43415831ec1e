"""The steps of a fit whose options are checked: prepare, resume, run."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from daskdl.cluster.processors import precision_on, threads_of_task
from daskdl.data import Batches, SampleSet
from daskdl.data.lazy.blocks import ordered
from daskdl.data.on_workers.tasks import check_client
from daskdl.errors import SettingsError
from daskdl.kernels.vectors.arithmetic import copied
from daskdl.nn import Frozen
from daskdl.nn.core.module import take_over
from daskdl.optim import Layout
from daskdl.predict.arguments import pair
from daskdl.signals import interrupts_not_lost
from daskdl.train.engines.choice import make_engine
from daskdl.train.engines.job import Job, Tools, pack
from daskdl.train.engines.step import State, beginning
from daskdl.train.fit.checkpoint import CheckpointFolder
from daskdl.train.fit.loop import Loop, interruptions_reported
from daskdl.train.fit.options import FitOptions
from daskdl.train.fit.restoring import identity_of, newest, restored_run, saved_run
from daskdl.train.fit.trial import inspect
from daskdl.train.watch.history import History
from daskdl.train.watch.progress import tell_restored

if TYPE_CHECKING:
    from distributed import Client

    from daskdl.train.fit.trainer import Trainer


@dataclass(frozen=True)
class Fit:
    """A fit that is ready to run: it was checked, and one sample went through the model.

    ``samples`` have the order of the options and a partition for each shard. ``identity`` is the
    key of its checkpoints. ``stopped`` says whether a callback had stopped the fit when the
    checkpoint was written.
    """

    trainer: Trainer
    options: FitOptions
    client: Client | None
    samples: SampleSet
    validation: SampleSet | None
    batches: Batches
    job: Job
    folder: CheckpointFolder | None
    identity: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False

    @property
    def total(self) -> int:
        """Iterations of the whole run."""
        return self.options.total(len(self.batches))

    @property
    def validated(self) -> list[str]:
        """Names of a validation's values; none without validation."""
        names = ["val_loss", *(f"val_{name}" for name in self.trainer.metrics)]
        return [] if self.validation is None else names

    @property
    def alone(self) -> bool:
        """Whether nothing needs the state at a group's beginning."""
        return self.client is None and self.folder is None

    def save(self, state: State, stopped: bool) -> None:
        """Write a checkpoint."""
        assert self.folder is not None
        history, callbacks = self.trainer.history, self.options.callbacks
        threads = self.job.threads
        self.folder.write(saved_run(state, self.identity, history, callbacks, threads, stopped))


def prepare(
    trainer: Trainer, samples: SampleSet, y: Any, options: FitOptions, client: Client | None
) -> Fit:
    """Check everything and run one sample; return the fit."""
    model, validation = trainer.model, options.validation
    take_over(model)
    if validation is not None:
        validation = pair("Trainer.fit, validation", validation, model, y)
    elif trainer.metrics and not options.training_metrics:
        raise SettingsError(
            f"Trainer.fit, training_metrics=False: expected validation samples to compute "
            f"{sorted(trainer.metrics)} on, found none"
        )
    for one in (samples, validation):
        if one is not None and client is not None:
            check_client("Trainer.fit", one.known, client)
        if one is not None:
            one.counted(client)
    if options.shards is not None and options.shards != samples.partitions:
        samples = samples.repartition(options.shards)
    samples = ordered(samples, options.shuffle)
    batches = Batches(samples.lengths, options.batch_size, trainer.seed)
    precision = trainer.computed_in = precision_on(trainer.precision, client)
    job = replace(_job(trainer, samples, validation, options, client), precision=precision)
    inspect(trainer, job, samples, options.batch_size)
    folder = None if options.checkpoint is None else CheckpointFolder(options.checkpoint)
    return Fit(trainer, options, client, samples, validation, batches, job, folder)


def resume(fit: Fit) -> tuple[Fit, State]:
    """Return a fit and its first state, or its checkpoint's if there is one."""
    trainer, options = fit.trainer, fit.options
    state = beginning(trainer.model, fit.job.tools().optimizer, shared=fit.alone)
    identity = identity_of(trainer, fit.samples, options.batch_size, options.wire)
    saved = newest(fit.folder, identity, state, trainer.precision) if options.resume else None
    trainer.history = History()
    fit = replace(fit, identity=identity)
    if saved is None:
        return fit, state
    trainer.computed_in = identity["precision"]
    threads = options.threads or int(saved.more["threads"])
    job = replace(fit.job, precision=trainer.computed_in, threads=threads)
    state, trainer.history = restored_run(saved, options.callbacks)
    trainer.model.restore(state.weights)
    if options.progress:
        tell_restored(state.iteration, fit.total, saved.more["stopped"], options.checkpoint)
    return replace(fit, job=job, stopped=saved.more["stopped"]), state


def run(fit: Fit) -> None:
    """Resume a fit and train to its end."""
    with nullcontext() if fit.folder is None else fit.folder.exclusive():
        fit, state = resume(fit)
        options = fit.options
        if fit.stopped or state.iteration >= fit.total:
            for callback in options.callbacks:
                callback.on_fit_end(fit.trainer)
            return
        engine = make_engine(
            options.engine, fit.client, fit.job, fit.samples, fit.validation, fit.alone
        )
        try:
            loop = Loop(fit, engine, state)
            del state  # which the loop has, and lets go of
            if fit.folder is not None and not options.resume:
                fit.folder.clear()
            with interruptions_reported(loop, options.checkpoint), interrupts_not_lost():
                loop.go()
        finally:
            engine.close()


def _job(
    trainer: Trainer,
    samples: SampleSet,
    validation: SampleSet | None,
    options: FitOptions,
    client: Client | None,
) -> Job:
    model, threads = trainer.model, options.threads
    tools = Tools(
        trainer.loss,
        tuple(trainer.metrics.values()),
        model=model,
        optimizer=trainer.optimizer.on(Layout.of(model)),
        functions=samples.functions,
        validation_functions=() if validation is None else validation.functions,
    )
    if threads is None:
        threads = threads_of_task(client, samples.partitions, "start of the fit")
    job = replace(
        pack(tools, trainer.seed, threads),
        rounded=model.flat.size if options.wire == "bfloat16" else 0,
        measures=options.training_metrics and bool(trainer.metrics),
    )
    copy = job.tools().model  # a job has no numbers of the model
    copy.share_vector(model)
    for name, table in model.tables.items():
        copy.tables[name].data = copied(table.data)
    for (_, frozen), (_, weight) in zip(copy.held(), model.held(), strict=True):
        if isinstance(weight, Frozen):
            frozen.data = weight.data
    return job
