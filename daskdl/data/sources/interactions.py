"""Interactions of users with items: held-out last ones, and items that users have not met.

X. He et al., Neural Collaborative Filtering, arXiv 1708.05031, section 4.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.data.batches import generator
from daskdl.data.partition import Batch
from daskdl.errors import DataError, SettingsError

Ids = NDArray[np.int64]


class Interactions:
    """Pairs of a user and an item.

    Parameters
    ----------
    users, items : int (n,)
        Numbers from 0 on.
    times : numbers (n,), optional
        Times; by default the order of the arrays.
    user_count, item_count : int
        Numbers of users and items; by default up to the largest one.

    Raises
    ------
    DataError
        When the arrays do not fit together, or a number is not in its range.
    """

    def __init__(
        self,
        users: ArrayLike,
        items: ArrayLike,
        times: ArrayLike | None = None,
        user_count: int | None = None,
        item_count: int | None = None,
    ) -> None:
        columns = {"users": np.asarray(users), "items": np.asarray(items)}
        columns["times"] = np.arange(len(columns["users"])) if times is None else np.asarray(times)
        counts: dict[str, int] = {}
        lengths = {name: array.shape for name, array in columns.items()}
        if (
            len(set(lengths.values())) != 1
            or columns["users"].ndim != 1
            or not columns["users"].size
        ):
            raise DataError(
                f"Interactions: expected arrays of one length (n,), found shapes {lengths}"
            )
        for name, count in (("users", user_count), ("items", item_count)):
            array = columns[name]
            if array.dtype.kind not in "iu" or array.min() < 0:
                raise DataError(
                    f"Interactions: expected {name} to be whole numbers from 0 on, found "
                    f"{array.dtype} from {array.min()}"
                    "; number them, for instance by numpy.unique(..., return_inverse=True)"
                )
            counts[name] = int(array.max()) + 1 if count is None else count
            if array.max() >= counts[name]:
                raise DataError(
                    f"Interactions: expected {name} below {counts[name]}, found {array.max()}"
                    "; raise the count, or leave it out"
                )
            columns[name] = array.astype(np.int64)
        self.users, self.items, self.times = columns.values()
        self.user_count, self.item_count = counts.values()

    def __len__(self) -> int:
        return len(self.users)

    @property
    def pairs(self) -> Ids:
        """Pairs (user, item), (n, 2)."""
        return np.stack([self.users, self.items], 1)

    def leave_one_out(self) -> tuple[Interactions, Interactions]:
        """Return all interactions but each user's last one, and these; of ties the later one.

        A user with only one interaction keeps it for training.
        """
        order = np.lexsort((self.times, self.users))
        users = self.users[order]
        last = np.append(users[1:] != users[:-1], True)
        alone = np.append(True, users[1:] != users[:-1]) & last
        is_last = np.zeros(len(self), bool)
        is_last[order[last & ~alone]] = True
        return self._some(~is_last), self._some(is_last)

    def _some(self, which: NDArray[np.bool_]) -> Interactions:
        if not which.any():
            raise DataError(
                "Interactions.leave_one_out: expected users with more than one interaction, found "
                "none; take another split than leave_one_out"
            )
        return Interactions(
            self.users[which], self.items[which], self.times[which], self.user_count,
            self.item_count,
        )  # fmt: skip

    def candidates(self, held: Interactions, negatives: int, seed: int = 0) -> Ids:
        """Return each held-out pair with items that its user has never met.

        The items differ, unless the user has met too many.

        Parameters
        ----------
        held : Interactions
            Held-out pairs, each user once; self has all interactions with these.
        negatives : int
        seed : int

        Returns
        -------
        int64 (len(held), 1 + negatives, 2)
            Pairs; the held-out pair is first.

        Raises
        ------
        DataError
            For a user who has met every item.
        """
        pairs = np.empty((len(held), 1 + negatives, 2), np.int64)
        pairs[:, :, 0], pairs[:, 0, 1] = held.users[:, None], held.items
        order = np.argsort(self.users, kind="stable")
        bounds = np.searchsorted(self.users[order], [held.users, held.users + 1])
        for i, (a, b) in enumerate(bounds.T):
            unmet = np.ones(self.item_count, bool)
            unmet[self.items[order[a:b]]] = False
            others = np.flatnonzero(unmet)
            user = int(held.users[i])
            if not others.size:
                raise _met_all(user, self.item_count)
            rng = generator(seed, "candidates", user)
            pairs[i, 1:, 1] = rng.choice(others, negatives, replace=others.size < negatives)
        return pairs

    def with_negatives(self, negatives: int = 4) -> Negatives:
        """Return a function for ``SampleSet.map`` that adds items that a user has not met."""
        return Negatives(self, negatives)


class Negatives:
    """Adds pairs to a batch: the same users with items that they have not met.

    They are drawn with each batch, on the worker, and are the same on any worker.

    Parameters
    ----------
    known : Interactions
        Pairs that are never drawn.
    negatives : int
        Number for each pair.
    """

    def __init__(self, known: Interactions, negatives: int) -> None:
        if negatives < 1:
            raise SettingsError(f"Negatives: expected at least 1, found {negatives!r}")
        # For 20 million pairs np.unique, which hashes them, takes longer by far than this.
        keys = np.sort(known.users * known.item_count + known.items)
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        counts = np.bincount(keys // known.item_count)
        if counts.max() >= known.item_count:
            raise _met_all(int(counts.argmax()), known.item_count)
        self.item_count, self.negatives = known.item_count, negatives
        self.keys = keys  # of pairs, as one number, sorted: 8 bytes each

    def __call__(self, batch: Batch, rng: np.random.Generator) -> Batch:
        """Map pairs ``x`` (N, 2) to ``x`` (N, 1 + negatives, 2), the given pair first, and ``y``.

        ``y`` (N, 1 + negatives), float32, is 1 for the given pairs and 0 for the others.
        """
        positive = np.asarray(batch["x"])
        n, width = len(positive), 1 + self.negatives
        pairs = np.repeat(positive[:, None], width, 1)
        items = np.empty((n, self.negatives), positive.dtype)
        users = pairs[:, 1:, 0].astype(np.int64)
        to_draw = np.ones(items.shape, bool)
        while to_draw.any():
            items[to_draw] = rng.integers(0, self.item_count, int(to_draw.sum()))
            keys = users[to_draw] * self.item_count + items[to_draw]
            to_draw[to_draw] = self._knows(keys)
        pairs[:, 1:, 1] = items
        y = np.zeros((n, width), np.float32)
        y[:, 0] = 1
        return {**batch, "x": pairs, "y": y}

    def _knows(self, keys: Ids) -> NDArray[np.bool_]:
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.asarray(self.keys[at] == keys)


def _met_all(user: int, items: int) -> DataError:
    return DataError(
        f"Interactions: expected users with items that they have not met, found that user {user} "
        f"has met all {items}; leave such users out"
    )
