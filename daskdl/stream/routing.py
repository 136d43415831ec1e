"""Routes: the topic of each answer, by its class and probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Routes:
    """A rule that gives each answer its topic.

    Parameters
    ----------
    topic : str
        Of answers without a topic of their own.
    dead_letters : str
        Of messages that cannot be decoded or predicted.
    by_label : mapping of str to str
        Topics of classes.
    below : float
        Answers of a lower probability go to ``unsure``.
    unsure : str, optional

    Examples
    --------
    >>> routes = Routes("other", "bad", {"billing": "money"}, below=0.5, unsure="people")
    >>> routes.of("billing", 0.9), routes.of("billing", 0.3), routes.of("greeting", 0.9)
    ('money', 'people', 'other')
    """

    topic: str
    dead_letters: str
    by_label: Mapping[str, str] = field(default_factory=dict)
    below: float = 0.0
    unsure: str | None = None

    def of(self, label: str, probability: float) -> str:
        """Return the topic of an answer."""
        if self.unsure is not None and probability < self.below:
            return self.unsure
        return self.by_label.get(label, self.topic)

    def topics(self) -> list[str]:
        """Return all topics, each once."""
        unsure = [] if self.unsure is None else [self.unsure]
        return list(
            dict.fromkeys([self.topic, self.dead_letters, *self.by_label.values(), *unsure])
        )
