"""Recurrent layers over sequences: RNN, LSTM and GRU, stacked and in both directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Parameter, forget_bias, generator, uniform
from daskdl.nn.core.state import next_draw

__all__ = ["GRU", "LSTM", "RNN"]

#: The states before or after a sequence: a tuple of arrays (N, C) for each layer and direction.
States = tuple[tuple[Any, ...], ...]


class _Recurrent(Module, pure=True):
    """Base of the recurrent layers: one set of weights for each layer and direction."""

    _operation: ClassVar[Callable[..., Any]]
    _weights: tuple[str, ...] = ("weight_input", "weight_state", "bias")
    _gates: ClassVar[int]
    _states: ClassVar[int] = 1

    def __init__(
        self,
        in_features: int,
        channels: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        returns: str = "both",
        seed: int | None = None,
    ) -> None:
        name = type(self).__name__
        if returns not in ("both", "sequence", "last"):
            raise SettingsError(
                f"{name}.returns: expected both, sequence or last, found {returns!r}"
            )
        if layers < 1:
            raise SettingsError(f"{name}.layers: expected at least 1, found {layers}")
        self.in_features, self.channels, self.layers = in_features, channels, layers
        self.bidirectional, self.dropout, self.returns = bidirectional, dropout, returns
        rng, rows = generator(seed), self._gates * channels
        for layer, end in self._places():
            width = channels * (1 + bidirectional) if layer else in_features
            shapes = {"weight_input": (rows, width), "weight_state": (rows, channels)}
            for kind, shape in shapes.items():
                setattr(self, f"{kind}_{layer}{end}", uniform(rng, shape, channels))
            for kind, bias in self._biases(rng).items():
                setattr(self, f"{kind}_{layer}{end}", bias)

    def _biases(self, rng: np.random.Generator) -> dict[str, Parameter]:
        return {"bias": uniform(rng, (self._gates * self.channels,), self.channels)}

    def _places(self) -> Iterator[tuple[int, str]]:
        """Yield (layer, ending of the weights' names), in the order of the states."""
        for layer in range(self.layers):
            yield layer, ""
            if self.bidirectional:
                yield layer, "_reverse"

    def _settings(self) -> dict[str, Any]:
        return {}

    def _run(self, x: Any, state: tuple[Any, ...], at: str, **settings: Any) -> tuple[Any, ...]:
        """Run one direction of a layer; its weights' names end with ``at``."""
        weights = [getattr(self, f"{kind}_{at}", None) for kind in self._weights]
        return type(self)._operation(x, *state, *weights, **self._settings(), **settings)

    def forward(
        self,
        x: Any,
        state: States | None = None,
        lengths: ArrayLike | None = None,
        reverse: bool = False,
    ) -> Any:
        """Run over a sequence.

        Parameters
        ----------
        x : (N, T, in)
        state : tuple, optional
            A tuple of arrays (N, C) for each layer and direction: (h, c) of an LSTM, (h,) of the
            others. By default zeros.
        lengths : int array (N,), optional
            Steps of each sample; later ones are not read.
        reverse : bool
            Whether to run from the last step to the first.

        Returns
        -------
        outputs : (N, T, C), or (N, T, 2 C) of a bidirectional one
            The only result with ``returns="sequence"``. With ``"last"`` the only result is the last
            outputs of each direction, (N, C) or (N, 2 C).
        state : tuple
            State after the sequence, in the form of the argument.
        """
        check_last_axis(self, x, 3, self.in_features)
        places = list(self._places())
        before = self._start(x, state, len(places))
        after: list[tuple[Any, ...]] = []
        for layer in range(self.layers):
            if layer and self.dropout and self.training:
                seed, counter = next_draw()
                x = ops.dropout(x, rate=self.dropout, seed=seed, counter=counter)
            outputs = []
            for end in ("", "_reverse") if self.bidirectional else ("",):
                y, *last = self._run(
                    x, before[len(after)], f"{layer}{end}", lengths=lengths,
                    reverse=reverse != bool(end),
                )  # fmt: skip
                outputs.append(y)
                after.append(tuple(last))
            x = ops.concatenate(*outputs) if self.bidirectional else outputs[0]
        if self.returns == "sequence":
            return x
        if self.returns == "last":
            final = [state[0] for state in after[-1 - self.bidirectional :]]
            return ops.concatenate(*final) if self.bidirectional else final[0]
        return x, tuple(after)

    def _start(self, x: Any, state: States | None, count: int) -> States:
        if state is None:
            return ((None,) * self._states,) * count
        shape = (x.shape[0], self.channels)
        shapes = [[tuple(part.shape) for part in one] for one in state]
        if shapes != [[shape] * self._states] * count:
            raise ShapeError(
                f"{type(self).__name__}: expected a state of {count} tuples, one for each layer "
                f"and direction, with {self._states} of shape {shape} each, found {shapes}"
                "; hand on the state that a call returned"
            )
        return state


class RNN(_Recurrent):
    """A simple recurrent layer, h = f(W x + U h + b).

    Parameters
    ----------
    in_features, channels : int
    layers : int
        Number of stacked layers.
    bidirectional : bool
        Whether each layer has a second set of weights that runs from the last step to the first.
    dropout : float
        Dropout rate between layers.
    returns : "both", "sequence" or "last"
        Outputs and states; only the outputs; or only the outputs after the last step. The latter
        two make it a layer for a Sequential.
    seed : int, optional
        Seed of the initial weights.
    nonlinearity : "tanh" or "relu"
    """

    _operation, _gates = staticmethod(ops.rnn), 1

    def __init__(
        self,
        in_features: int,
        channels: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        returns: str = "both",
        seed: int | None = None,
        nonlinearity: str = "tanh",
    ) -> None:
        super().__init__(in_features, channels, layers, bidirectional, dropout, returns, seed)
        self.nonlinearity = nonlinearity

    def _settings(self) -> dict[str, Any]:
        return {"nonlinearity": self.nonlinearity}


class LSTM(_Recurrent):
    """Long short-term memory (S. Hochreiter and J. Schmidhuber, 1997).

    Parameters
    ----------
    in_features, channels, layers, bidirectional, dropout, returns, seed
        As :class:`RNN`'s. The bias of the forget gates starts at 1.
    peepholes : bool
        Whether each gate also reads its cell's state (F. Gers, J. Schmidhuber, 2000).
    """

    _operation, _gates, _states = staticmethod(ops.lstm), 4, 2
    _weights = ("weight_input", "weight_state", "bias", "peepholes")  # peepholes are optional

    def __init__(
        self,
        in_features: int,
        channels: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        returns: str = "both",
        seed: int | None = None,
        peepholes: bool = False,
    ) -> None:
        self.peepholes = peepholes
        super().__init__(in_features, channels, layers, bidirectional, dropout, returns, seed)

    def _biases(self, rng: np.random.Generator) -> dict[str, Parameter]:
        biases = {"bias": Parameter(forget_bias(self.channels))}
        if self.peepholes:
            biases["peepholes"] = Parameter(
                rng.uniform(-1, 1, (3, self.channels)) / math.sqrt(self.channels)
            )
        return biases


class GRU(_Recurrent):
    """Gated recurrent unit (K. Cho et al., arXiv 1406.1078), with the reset after the product.

    Parameters
    ----------
    in_features, channels, layers, bidirectional, dropout, returns, seed
        As :class:`RNN`'s.
    """

    _operation, _gates = staticmethod(ops.gru), 3
    _weights = ("weight_input", "weight_state", "bias_input", "bias_state")

    def _biases(self, rng: np.random.Generator) -> dict[str, Parameter]:
        shape = (3 * self.channels,)
        return {kind: uniform(rng, shape, self.channels) for kind in ("bias_input", "bias_state")}
