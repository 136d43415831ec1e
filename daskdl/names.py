"""Unknown names of arguments: similar names, and our names for arguments of other libraries."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from daskdl.errors import SettingsError

P = ParamSpec("P")
R = TypeVar("R")

#: Our arguments, and their names in PyTorch, Keras, BigDL, xgboost and scikit-learn.
CALLED: dict[str, tuple[str, ...]] = {
    "axes": ("dims", "dim", "axis"),
    "axis": ("dim",),
    "batch_size": ("batch", "batchsize", "bs", "minibatch_size"),
    "beta1": ("betas", "beta_1", "b1"),
    "beta2": ("beta_2", "b2"),
    "bias": ("use_bias", "with_bias"),
    "callbacks": ("callback",),
    "channels": ("num_features", "hidden_size", "hidden_dim", "units", "num_channels"),
    "checkpoint": ("checkpoint_dir", "checkpoint_path", "ckpt_path", "save_dir"),
    "classes": ("num_classes", "n_classes", "class_num"),
    "dilation": ("dilation_rate", "dilations"),
    "end": ("eta_min", "min_lr", "end_lr"),
    "engine": ("backend", "strategy"),
    "epochs": ("epoch", "n_epochs", "num_epochs", "nb_epoch", "max_epochs", "max_epoch"),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "every": ("step_size", "step"),
    "factor": ("gamma", "decay_rate"),
    "features": ("embedding_dim", "output_dim", "embed_dim", "d_model", "dim"),
    "groups": ("group", "n_group"),
    "heads": ("num_heads", "n_heads", "nhead"),
    "in_channels": ("in_planes", "in_features", "n_input_plane", "in_dim"),
    "in_features": ("input_size", "input_dim", "in_dim", "in_channels"),
    "iterations": ("steps", "max_iter", "n_iter", "num_steps", "max_steps", "total", "total_steps",
                   "num_boost_round", "n_estimators", "warmup_steps"),
    "keepdims": ("keepdim",),
    "kernel_size": ("kernel", "filter_size", "ksize", "kernel_shape"),
    "layers": ("num_layers", "n_layers"),
    "learning_rate": ("lr", "eta", "rate", "step_size"),
    "loss": ("criterion", "objective", "loss_fn", "loss_function"),
    "metrics": ("metric", "eval_metric", "scoring"),
    "optimizer": ("optim", "optim_method", "method", "solver"),
    "out_channels": ("filters", "planes", "out_features", "out_dim"),
    "out_features": ("units", "output_size", "out_dim", "out_channels", "hidden_size"),
    "over": ("total", "total_steps", "T_max", "steps", "n_steps", "iterations", "decay_steps",
             "max_iter", "epochs"),
    "padding": ("pad", "pads"),
    "padding_index": ("padding_idx",),
    "progress": ("verbose", "verbosity", "progress_bar"),
    "rate": ("lr", "learning_rate", "max_lr", "base_lr", "p", "drop_rate", "init_p"),
    "rows": ("num_embeddings", "input_dim", "vocab_size"),
    "samples": ("data", "dataset", "dataloader", "train_loader", "train_data", "x", "X"),
    "seed": ("random_state", "random_seed", "rng"),
    "slope": ("negative_slope",),
    "smoothing": ("label_smoothing", "rho"),
    "stride": ("strides",),
    "threads": ("n_jobs", "nthread", "num_threads", "n_threads", "num_workers"),
    "validation": ("validation_data", "val_data", "valid", "val", "eval_set", "evals", "eval_data"),
    "weight_decay": ("wd", "l2", "decay"),
    "workers": ("n_workers", "num_workers", "n_jobs"),
    "y": ("labels", "targets", "target", "label"),
}  # fmt: skip


#: Methods of models in PyTorch, Keras and BigDL, and their equivalents here.
DONE_BY = {
    **dict.fromkeys(("save", "save_model", "save_weights"), "daskdl.save(model, 'm.safetensors')"),
    **dict.fromkeys(("load", "load_model"), "daskdl.load('m.safetensors')"),
    "load_weights": "model.load_state_dict(daskdl.load('m.safetensors').state_dict())",
    **dict.fromkeys(
        ("fit", "compile", "train_on_batch"),
        "Trainer(model, loss, optimizer).fit(samples, epochs=10)",
    ),
    **dict.fromkeys(("to", "cuda", "cpu"), "nothing, all is computed on CPUs; leave it out"),
    "add": "Sequential(layer, layer)",
}


def nearest(name: Any, known: Iterable[str], most: int = 5) -> list[str]:
    """Return the public known names that are most similar to a name.

    Examples
    --------
    >>> nearest("Convolution", ["Conv2d", "Conv3d", "Linear", "_Conv"], 2)
    ['Conv3d', 'Conv2d']
    """
    public = sorted(one for one in known if not one.startswith("_"))
    lower = {one.lower(): one for one in public}
    close = difflib.get_close_matches(str(name).lower(), lower, most, 0)
    return [lower[one] for one in close]


#: Arguments of an optimizer that other libraries pass to the training function.
OF_OPTIM = ("learning_rate", "momentum", "weight_decay")


def check_keywords(
    where: str,
    known: Collection[str],
    keywords: Iterable[str],
    alternatives: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Raise a SettingsError for an unknown argument, with our name for it.

    ``where`` is the called function, for the error; ``alternatives`` maps names of other functions
    that the user may have meant to their arguments.
    """
    for name in keywords:
        if name in known:
            continue
        same = [ours for ours in known if name in CALLED.get(ours, ())]
        if same:
            raise SettingsError(
                f"{where}: expected {same[0]}=, as it is called here, found {name}="
            )
        near = ", ".join(nearest(name, known))
        wanted = f"arguments such as {near}" if near else "no arguments by name"
        hint = _owner(name, alternatives) if alternatives else ""
        raise SettingsError(f"{where}: expected {wanted}, found {name}={hint}")


def _owner(name: str, alternatives: Mapping[str, Collection[str]]) -> str:
    """Return the end of an error that names the function with this argument; "" if none has it."""
    if name in ("early_stopping", "early_stopping_rounds"):
        return "; Trainer.fit(..., callbacks=[EarlyStopping(5)]) stops early"
    for ours in (name, *(known for known, others in CALLED.items() if name in others)):
        for where, known in alternatives.items():
            if ours in known:
                return f"; give {ours}= to {where}"
        if ours in OF_OPTIM:
            return f"; give {ours}= to the optimizer, such as SGD({ours}=...)"
    return ""


def named(function: Callable[P, R]) -> Callable[P, R]:
    """Check the names of keyword arguments before a function is called."""
    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name != "self"]
    where = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        if not parameters.keys() >= keywords.keys():
            check_keywords(where, known, keywords, _alternatives(function, type(arguments[0])))
        return function(*arguments, **keywords)

    return call


def _alternatives(function: Callable[..., Any], cls: type) -> dict[str, list[str]]:
    """Return the arguments of a class's constructor and methods, except ``function``, by name."""
    public = [(f"{cls.__name__}.{n}", f) for n, f in inspect.getmembers(cls) if n[0] != "_"]
    return {
        where: list(inspect.signature(method).parameters)
        for where, method in [(cls.__name__, cls.__init__), *public]  # type: ignore[misc]
        if inspect.isroutine(method) and method.__name__ != function.__name__
    }


class Named:
    """Base of classes whose constructors check the names of keyword arguments."""

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Create an object, after a check of the names of its arguments."""
        check_constructor(cls, keywords)
        return super().__new__(cls)


def check_constructor(cls: type, keywords: Iterable[str]) -> None:
    """Raise a SettingsError for unknown arguments of a class of daskdl."""
    if keywords and cls.__module__.startswith("daskdl."):
        known = _parameters(cls)
        if known is not None:
            check_keywords(cls.__name__, known, keywords)


@functools.cache
def _parameters(cls: type) -> tuple[str, ...] | None:
    """Return the names of a constructor's arguments; None if it takes any."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return tuple(p.name for p in parameters)
