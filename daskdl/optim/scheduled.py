"""A method whose learning rate is a number or follows a schedule."""

from __future__ import annotations

from abc import abstractmethod

from daskdl.errors import SettingsError
from daskdl.optim.method import Method, State, in_range
from daskdl.optim.schedules.schedule import Schedule

#: Before the names of a schedule's own state.
PREFIX = "learning_rate."


class Scheduled(Method):
    """Base of the methods that have a learning rate.

    Their field ``learning_rate`` is a number or a :class:`~daskdl.optim.schedules.Schedule`.
    """

    learning_rate: float | Schedule

    def __post_init__(self) -> None:
        rate = self.learning_rate
        if isinstance(rate, Schedule):
            return
        if callable(rate):
            raise SettingsError(
                f"{type(self).__name__}: expected learning_rate to be a number or a Schedule, "
                f"found {rate!r}; a schedule of one's own inherits from Schedule"
            )
        in_range(self, "learning_rate", rate, 0, float("inf"))

    def rate_at(self, iteration: int, state: State | None = None) -> float:
        """Return the learning rate of an iteration."""
        rate = self.learning_rate
        # A float first: that it is no instance of an abstract class takes longer to tell.
        if isinstance(rate, float) or not isinstance(rate, Schedule):
            return float(rate)
        return rate(iteration) if state is None else rate.at(iteration, _schedules(state))

    @abstractmethod
    def slots(self, size: int) -> State:
        """Return the state before the first step, without the schedule's state."""

    def init(self, size: int) -> State:
        """Return the state before the first step."""
        rate = self.learning_rate
        of_rate = rate.init() if isinstance(rate, Schedule) else {}
        return self.slots(size) | {PREFIX + name: value for name, value in of_rate.items()}

    def observe(self, state: State, metric: float) -> State:
        """Return the state after the schedule saw a metric."""
        if not isinstance(self.learning_rate, Schedule):
            return state
        after = self.learning_rate.observe(_schedules(state), metric)
        return state | {PREFIX + name: value for name, value in after.items()}

    def schedule_state(self, state: State) -> State:
        """Return the schedule's state, which a step does not change."""
        rate = self.learning_rate
        if isinstance(rate, float) or not isinstance(rate, Schedule):
            return {}
        return {name: value for name, value in state.items() if name.startswith(PREFIX)}


def _schedules(state: State) -> State:
    return {
        name.removeprefix(PREFIX): value for name, value in state.items() if name.startswith(PREFIX)
    }
