"""Batch sizes: as many records at a time as the model works through in the time that is wanted."""

from __future__ import annotations


class BatchLimit:
    """The most records that the next batch may have.

    It begins small, at most doubles from batch to batch, and follows the speed that was measured:
    a slow model gets small batches, so that no answer waits long for others, a quick one large
    batches, which cost fewer calls and transactions.

    Parameters
    ----------
    largest : int
        Never more records than this.
    seconds : float
        That a batch shall take.
    """

    def __init__(self, largest: int, seconds: float) -> None:
        self._largest, self._seconds = largest, seconds
        self.limit = min(32, largest)

    def worked(self, records: int, seconds: float) -> None:
        """Take in how long a batch took.

        Small batches tell little about large ones: their fixed costs are most of them.
        """
        if records < self.limit // 2 or not records:
            return
        fitting = int(records * self._seconds / max(seconds, 1e-6))
        self.limit = max(1, min(fitting, 2 * self.limit, self._largest))
