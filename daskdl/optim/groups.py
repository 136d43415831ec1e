"""Groups: parameters with a learning rate or a weight decay of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.optim.layout import Layout
from daskdl.optim.method import Method, State, Step, Stepped, Terms, Vector, in_range
from daskdl.optim.ranges import Grouping, Ranges
from daskdl.optim.scheduled import Scheduled
from daskdl.rows import Rows


@dataclass(frozen=True)
class Group:
    """Parameters that share a learning rate or a weight decay of their own.

    Parameters
    ----------
    pattern : str
        Pattern of names, such as ``"encoder.*"`` or ``"*.bias"`` (fnmatch).
    rate : float
        Factor of the learning rate; 0 leaves the parameters unchanged.
    weight_decay : float, optional
        By default the method's.
    most_axes : int, optional
        Largest number of axes of the group's parameters: 1 for biases and gains of norms.

    Examples
    --------
    >>> from daskdl.optim import AdamW
    >>> slower, plain = Group("encoder.*", rate=0.1), Group(most_axes=1, weight_decay=0.0)
    >>> Groups(AdamW(1e-3), (slower, plain)).groups[0]
    Group(pattern='encoder.*', rate=0.1, weight_decay=None, most_axes=None)
    """

    pattern: str = "*"
    rate: float = 1.0
    weight_decay: float | None = None
    most_axes: int | None = None

    def __post_init__(self) -> None:
        in_range(self, "rate", self.rate, 0, inf)
        if self.weight_decay is not None:
            in_range(self, "weight_decay", self.weight_decay, 0, inf)

    def places(self, layout: Layout) -> list[int]:
        """Return the places of the group's parameters in a layout."""
        most = inf if self.most_axes is None else self.most_axes
        places = [i for i in layout.find(self.pattern) if len(layout.shapes[i]) <= most]
        if not places:
            some = ", ".join(layout.names[:5]) + (", ..." if len(layout.names) > 5 else "")
            axes = "" if self.most_axes is None else f" and at most {self.most_axes} axes"
            raise SettingsError(
                f"Group: expected a parameter whose name matches {self.pattern!r}{axes}, found "
                f"none among the {len(layout.names)} of the model ({some})"
                "; take names from model.named_parameters(), with * for any letters"
            )
        return places


#: No weight decay for biases and the gains of norms.
NO_DECAY_OF_VECTORS = Group(most_axes=1, weight_decay=0.0)


class Grouped(Scheduled):
    """Base of the methods whose learning rate and weight decay may differ by group of parameters.

    Groups may override their field ``weight_decay``.
    """

    weight_decay: float

    def on(self, layout: Layout) -> Method:
        """Return the method for a model's parameters; frozen ones become a group."""
        return Groups(self, ()).on(layout) if layout.frozen else self.bound(layout)

    def bound(self, layout: Layout) -> Self:
        """Return the method for a model's parameters without frozen ones."""
        return self

    def decay_of(self, of_group: float | None) -> float:
        """Return a group's weight decay: its own, or the method's."""
        return self.weight_decay if of_group is None else of_group


@dataclass(frozen=True)
class Groups(Method):
    """A method with groups of parameters; the first group that matches a parameter counts.

    A wrapper such as :class:`ClipNorm` goes around this method, not inside.

    Parameters
    ----------
    method : Method
        Any method with a weight decay: all but LBFGS.
    groups : tuple of Group

    Examples
    --------
    >>> from daskdl.optim import AdamW
    >>> layout = Layout(("dense.weight", "dense.bias"), ((2, 3), (2,)))
    >>> Groups(AdamW(), (Group("*.bias", weight_decay=0.0),)).on(layout).ranges
    Ranges(stops=(6, 8), kinds=(0, 1))
    """

    method: Grouped
    groups: tuple[Group, ...] = (NO_DECAY_OF_VECTORS,)
    ranges: Ranges | None = field(default=None, repr=False)
    tables: tuple[tuple[str, int], ...] = field(default=(), repr=False)  # name, number of its group

    def __post_init__(self) -> None:
        if not isinstance(self.method, Grouped):
            raise SettingsError(
                f"Groups: expected a method whose rate and decay may differ by parameter, found "
                f"{self.method!r}; what wraps a method goes around Groups"
            )
        object.__setattr__(self, "groups", tuple(self.groups))
        for group in self.groups:
            if not isinstance(group, Group):
                raise SettingsError(
                    f"Groups: expected a tuple of Group, found {group!r} in it"
                    "; write (Group(pattern, rate=...),)"
                )

    def on(self, layout: Layout) -> Self:
        """Return the method for a model's parameters; frozen ones become one more group."""
        kinds = [0] * len(layout.names)
        for number in range(len(self.groups), 0, -1):  # the first one last, so that it stays
            for place in self.groups[number - 1].places(layout):
                kinds[place] = number
        for place, name in enumerate(layout.names):
            if name in layout.frozen:
                kinds[place] = len(self.groups) + 1
        stops = layout.ranges.stops  # of the parameters in the vector
        ranges = Ranges(stops, tuple(kinds[: len(stops)])).joined()
        tables = tuple(zip(layout.names, kinds, strict=True))[len(stops) :]
        method = self.method.on(replace(layout, frozen=()))
        assert isinstance(method, Grouped)
        return replace(self, method=method, ranges=ranges, tables=tables)

    @property
    def joint(self) -> bool:
        """The inner method's value."""
        return self.method.joint

    @property
    def unit(self) -> int:  # type: ignore[override]
        """The inner method's value."""
        return self.method.unit

    def part(self, slices: Sequence[slice]) -> Self | None:
        """Return the method for adjacent slices."""
        inner = self.method.part(slices)
        if inner is None:
            return None
        return replace(self, method=inner, ranges=self._ranges().part(slices))

    def term_starts(self, size: int) -> NDArray[np.int64]:
        """Return the inner method's first indices of terms."""
        return self.method.term_starts(size)

    def terms_at(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Terms:
        """Return the terms that the inner method needs."""
        return self.method.terms_at(weights, gradient, state, self._at(at))

    def knowing(
        self, terms: NDArray[np.float64], row_terms: Sequence[NDArray[np.float64]] = ()
    ) -> Self:
        """Return the method for one step, with the terms of the whole vector."""
        return replace(self, method=self.method.knowing(terms, row_terms))

    def init(self, size: int) -> State:
        """Return the method's state."""
        if self._ranges().size != size:
            raise SettingsError(
                f"Groups: expected a vector of the {self._ranges().size} numbers of its layout, "
                f"found {size}"
                "; call on(Layout.of(model)) for this model"
            )
        return self.method.init(size)

    def stepped(self, weights: Vector, gradient: Vector, state: State, at: Step) -> Stepped:
        """Return new weights and state."""
        return self.method.stepped(weights, gradient, state, self._at(at))

    def init_rows(self, size: int) -> State:
        """Return the method's state of tables."""
        return self.method.init_rows(size)

    def step_rows(self, name: str, table: Vector, rows: Rows, state: State, at: Step) -> None:
        """Step the rows of a table, in place, with the settings of the table's group alone."""
        kind, groups = dict(self.tables)[name], self._at(at).groups
        alone = Grouping(None, (groups.rates[kind],), (groups.decays[kind],))
        self.method.step_rows(name, table, rows, state, at._replace(groups=alone))

    def observe(self, state: State, metric: float) -> State:
        """Return the state after a validation."""
        return self.method.observe(state, metric)

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of parameters without a group."""
        return self.method.rate_at(iteration, state)

    def _at(self, at: Step) -> Step:
        rates = (1.0, *(group.rate for group in self.groups), 0.0)
        decays = (None, *(group.weight_decay for group in self.groups), None)
        return at._replace(groups=Grouping(self._ranges(), rates, decays))

    def _ranges(self) -> Ranges:
        if self.ranges is None:
            raise SettingsError(
                "Groups: expected on(Layout.of(model)) before a step, since names belong to a "
                f"model's parameters; found patterns {[g.pattern for g in self.groups]} without one"
            )
        return self.ranges
