"""FromTasks: partitions made of the results of Dask's own tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from daskdl.cluster.current import is_future
from daskdl.data.lazy.transformations import Transformation
from daskdl.data.partition import Partition
from daskdl.data.recipe import Recipe, Schema

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Future


class FromTasks(Recipe):
    """A partition made of the results of Dask's tasks, which may be on the workers already.

    ``transform`` makes it of the results of the tasks ``keys``. In the graph ``tasks`` a Future
    stands for an existing result. The length is None until loading shows it.
    """

    def __init__(
        self,
        tasks: Mapping[Key, Any],
        keys: tuple[Key, ...],
        transform: Transformation,
        length: int | None,
        nbytes: int,
        schema: Schema | None = None,
    ) -> None:
        self.tasks, self.keys, self.transform = tasks, keys, transform
        self._length, self._nbytes, self._schema = length, nbytes, schema

    @property
    def futures(self) -> tuple[Future, ...]:
        """Existing results."""
        return tuple(filter(is_future, self.tasks.values()))

    @property
    def is_lazy(self) -> bool:
        """Whether any of its tasks has to be computed."""
        return len(self.futures) < len(self.tasks)

    @property
    def nbytes(self) -> int:
        """Bytes of the loaded partition, if the collection knows."""
        return self._nbytes

    @property
    def schema(self) -> Schema | None:
        """Shape and dtype of each array of a sample, if the collection knows."""
        return self._schema

    def __len__(self) -> int:
        assert self._length is not None, "samples that are not counted yet"
        return self._length

    def load(self) -> Partition:
        """Compute the tasks here."""
        import dask

        results = {future.key: future.result() for future in self.futures}
        tasks = {key: task for key, task in self.tasks.items() if key not in results}
        # Inside a task: another one for it would wait for this worker's own thread.
        return self.transform(*dask.get({**tasks, **results}, list(self.keys)))
