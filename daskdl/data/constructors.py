"""Constructors of a SampleSet: one for each kind of data, ``from_...``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from daskdl.data.nested import flat
from daskdl.data.recipe import Recipe

if TYPE_CHECKING:
    import os

    import xarray as xr

    from daskdl.data.sources.dataframe import Field
    from daskdl.data.tabular import TableEncoder


class Constructors(ABC):
    """Class methods ``from_...`` of a SampleSet, each a function of ``daskdl.data.sources``.

    Several arrays may stand under one name, as a mapping in the place of an array, a column or a
    path: ``x={"age": ..., "words": ...}``. They become ``x.age`` and ``x.words``, see
    :mod:`daskdl.data.nested`.
    """

    #: What made numbers and ids of the rows of a DataFrame, if it was one with a target.
    encoder: TableEncoder | None = None

    @abstractmethod
    def __init__(self, recipes: Sequence[Recipe]) -> None: ...

    @abstractmethod
    def repartition(self, partitions: int) -> Self:
        """Cut the samples into so many partitions."""

    @classmethod
    def _cut(cls, recipes: Sequence[Recipe], partitions: int | None) -> Self:
        made = cls(recipes)
        return made if partitions is None else made.repartition(partitions)

    @classmethod
    def from_arrays(cls, *, partitions: int | None = None, **arrays: ArrayLike | Any) -> Self:
        """Make one of arrays in memory, Dask arrays, xarray's of either, or zarr arrays.

        Parameters
        ----------
        partitions : int, optional
            Cut arrays in memory into so many of nearly equal length, by default one; no more than
            there are samples. Dask arrays have a partition for each chunk along the first axis
            unless another number is given, zarr arrays one for each chunk.
        **arrays : array_like, Ragged, dask.array.Array, DataArray or zarr.Array (n, ...)
            By name; for training ``x`` and ``y``, each of which may be a tuple or a mapping of
            several. What is given beside a Dask array is cut as that.

        Raises
        ------
        DataError
            When the arrays differ in length, are empty, or have masked elements.

        Examples
        --------
        >>> from daskdl import SampleSet
        >>> samples = SampleSet.from_arrays(x=np.zeros((10, 3)), y=np.arange(10), partitions=2)
        >>> samples.lengths, samples.head(2)["y"]
        ((5, 5), array([0, 1]))
        """
        from daskdl.data.sources.collections import from_arrays

        return cls._cut(from_arrays(arrays, partitions), partitions)

    @classmethod
    def from_bag(
        cls, bag: Any, function: Callable[[Any], Any] | None = None, on_error: str = "raise"
    ) -> Self:
        """Make one of the elements of a Dask Bag, with its partitions.

        Parameters
        ----------
        bag : dask.bag.Bag
        function : callable, optional
            From an element to a sample: a dict of arrays by name, or a pair (x, y), or x. Elements
            are such samples themselves by default. Arrays that differ in the length of their first
            axis become a :class:`~daskdl.data.Ragged` column.
        on_error : "raise" or "skip"
            What to do about an element of which the function makes no sample, or one of another
            shape than most of its partition: raise a DataError that names it, or leave it out and
            name it in :attr:`SampleSet.bad`.
        """
        from daskdl.data.sources.collections import from_bag

        return cls(from_bag(bag, function, on_error))

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        *,
        target: str | None = None,
        encoder: TableEncoder | None = None,
        decode: Mapping[str, Callable[[Any], Any]] | None = None,
        on_error: str = "raise",
        **fields: Field,
    ) -> Self:
        """Make one of the rows of a pandas or Dask DataFrame, with its partitions.

        Parameters
        ----------
        frame : pandas.DataFrame or dask.dataframe.DataFrame
        target : str, optional
            The column to predict, from all others, of any kinds: numbers, words, dates, gaps. An
            encoder is fitted to them in one pass, and is then :attr:`encoder`; see
            :class:`daskdl.data.tabular.TableEncoder` and :class:`daskdl.models.TabularNet`.
        encoder : TableEncoder, optional
            One that was fitted to another table, such as the training set, instead.
        decode : mapping of name to callable, optional
            Makes an array of each value of a column, such as an image of bytes.
        on_error : "raise" or "skip"
            About values that cannot be decoded, see :meth:`from_bag`.
        **fields : str or list of str
            A column for each name, or several that stand side by side on a last axis, as in
            ``x=["age", "weight"], y="label"``. Columns of lists become Ragged.
        """
        from daskdl.data.sources.dataframe import fitted, from_dataframe

        if target is not None and encoder is None:
            encoder = fitted(frame, target, flat(fields))
        made = cls(from_dataframe(frame, flat(fields), decode, on_error, encoder))
        made.encoder = encoder
        return made

    @classmethod
    def from_parquet(
        cls,
        urls: str | os.PathLike[str] | Iterable[str],
        *,
        decode: Mapping[str, Callable[[Any], Any]] | None = None,
        on_error: str = "raise",
        storage_options: Mapping[str, Any] | None = None,
        **fields: Field,
    ) -> Self:
        """Make one of Parquet files; each row group is a partition, of which workers read columns.

        Parameters
        ----------
        urls : path or URL, or several
            Of files, of a folder, or with ``*``, of any store that fsspec knows.
        decode, on_error, **fields :
            As for :meth:`from_dataframe`.
        storage_options : mapping, optional
            For fsspec.
        """
        from daskdl.data.sources.parquet import from_parquet

        return cls(from_parquet(urls, flat(fields), decode, on_error, storage_options))

    @classmethod
    def from_delayed(
        cls,
        values: Iterable[Any],
        function: Callable[[Any], Any] | None = None,
        lengths: Sequence[int] | None = None,
    ) -> Self:
        """Make one of delayed objects or Futures; each is a partition.

        Parameters
        ----------
        values : sequence of dask.delayed.Delayed or distributed.Future
            Each a dict of arrays by name with a common first axis.
        function : callable, optional
            Makes such a dict of each.
        lengths : sequence of int, optional
            Samples of each; without, they are counted on the workers.
        """
        from daskdl.data.sources.collections import from_delayed

        return cls(from_delayed(values, function, lengths))

    @classmethod
    def from_xarray(
        cls,
        data: str | os.PathLike[str] | xr.Dataset | xr.DataArray,
        *,
        dim: str,
        partitions: int | None = None,
        **fields: Field,
    ) -> Self:
        """Make one of the samples along a dimension of a Dataset, a DataArray or a zarr store.

        Parameters
        ----------
        data : path of a zarr store, Dataset or DataArray
        dim : str
            Along which the samples lie.
        partitions : int, optional
            By default one for each chunk.
        **fields : str or list of str
            The variables by name: ``x="image", y="label"``. Several of one name, as in
            ``x=["u10", "v10"]``, stand side by side on a last axis. Other dimensions follow in the
            order that the data have them in. A DataArray is ``x`` by default.
        """
        from daskdl.data.sources.xarray import from_xarray

        return cls._cut(from_xarray(data, dim, flat(fields), partitions), partitions)

    @classmethod
    def from_windows(
        cls,
        data: Any,
        window: Mapping[Hashable, int | None],
        *,
        step: int | Mapping[Hashable, int] | None = None,
        where: Any = None,
        weights: Any = None,
        seed: int = 0,
        partitions: int | None = None,
        **fields: str,
    ) -> Self:
        """Make one of windows of arrays of any axes, such as a scene and its mask.

        Windows begin at every ``step``-th cell; cells behind the last whole one are in none. A
        partition is the windows of a part of the arrays, some 64 MB, which is read once.

        Parameters
        ----------
        data : mapping of name to array, Dataset, DataArray or array; or a list of these
            Of numpy, Dask, zarr or xarray; one alone is ``x``. Those without a window's axis are in
            every sample whole. Along it they may be coarser or finer than the first that has all.
            The scenes of a list may differ in size.
        window : mapping of name or number of an axis to int or None
            Cells of a window, such as ``{"y": 256, "x": 256}``; None stands for one cell, of an
            axis that samples do not have. They have all other axes whole, in the arrays' order.
        step : int or mapping of axis to int, optional
            By default a window's cells.
        where : array of bool, or callable, optional
            Keep the windows with any cell that is true, of an array over the axes of the windows;
            or those of which ``where(batch)`` is true, (n,). In one pass of tasks, at once. Of
            several scenes a list of arrays.
        weights : str, array or callable, optional
            How often each window is drawn. An epoch has as many samples as there are windows, and
            each as often as its weight among all says, to within one; each epoch of a fit draws
            anew. They are the mean over a window of an array, or what ``weights(batch)`` returns,
            (n,). The name of an array of classes makes windows with rare classes come more often.
        seed : int
            Of the draw that all but a fit sees: ``head``, ``map_batches``, an evaluation.
        partitions : int, optional
        **fields : str
            Variables of a Dataset by name, ``x="image", y="mask"``; by default all, as they are.

        Raises
        ------
        DataError
            When the arrays do not fit together, or no window is left.
        SettingsError
            When the window or the step is none of theirs.

        Examples
        --------
        >>> from daskdl import SampleSet
        >>> data = {"x": np.zeros((100, 80, 3)), "y": np.zeros((100, 80), int)}
        >>> samples = SampleSet.from_windows(data, {0: 32, 1: 32}, step=16)
        >>> len(samples), samples.head(2)["x"].shape, samples.head(2)["y"].shape
        (20, (2, 32, 32, 3), (2, 32, 32))
        """
        from daskdl.data.windows.choice import from_windows

        return cls._cut(from_windows(data, window, step, where, weights, seed, fields), partitions)

    @classmethod
    def from_zarr(
        cls,
        url: str | os.PathLike[str],
        *,
        partitions: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        **names: str,
    ) -> Self:
        """Make one of arrays of a zarr group, which workers read stretch by stretch.

        Parameters
        ----------
        url : path or URL
        partitions : int, optional
            By default each has whole chunks of the first array, of some 64 MB.
        storage_options : mapping, optional
            For fsspec.
        **names : str
            Path of an array in the group for each name; their first axis is that of the samples.
        """
        from daskdl.data.sources.zarr import from_zarr

        return cls._cut(from_zarr(url, flat(names), partitions, storage_options), partitions)

    @classmethod
    def from_files(
        cls,
        urls: str | os.PathLike[str] | Iterable[str],
        read: Callable[..., Any],
        *,
        partitions: int | None = None,
        on_error: str = "raise",
        storage_options: Mapping[str, Any] | None = None,
        **columns: ArrayLike,
    ) -> Self:
        """Make one of files, each of which is a sample.

        Parameters
        ----------
        urls, on_error, storage_options :
            As for :meth:`from_parquet`.
        read : callable
            ``read(file)`` or ``read(file, url)``, from a file that is open for reading bytes to a
            sample, see :meth:`from_bag`.
        partitions : int, optional
            By default as many as make 64 MB each, if all samples are as large as the first.
        **columns : array_like (files, ...)
            More of each sample, such as ``y=labels``.
        """
        from daskdl.data.sources.files import from_files

        return cls(from_files(urls, read, partitions, on_error, storage_options, flat(columns)))

    @classmethod
    def from_tar(
        cls,
        urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        decode: Mapping[str, Callable[[bytes], Any]] | None = None,
        on_error: str = "raise",
        storage_options: Mapping[str, Any] | None = None,
        **endings: str,
    ) -> Self:
        """Make one of tar archives as WebDataset has them; each is a partition.

        Files one behind the other that have one name are a sample: ``0001.jpg`` and ``0001.cls``.
        The workers list the archives at once, and read the files when they are needed.

        Parameters
        ----------
        urls, storage_options :
            As for :meth:`from_parquet`.
        decode : mapping of name to callable, optional
            Makes a value of the bytes of a file. By default "cls", "id" and "index" are whole
            numbers, "txt" is text, "npy" an array, and all else the bytes themselves, uint8.
        on_error : "raise" or "skip"
            About samples that lack a file or cannot be decoded, and about archives that break off,
            see :meth:`from_bag`.
        **endings : str
            Of the file for each name, as in ``x="jpg;jpeg;png", y="cls"``: the first that is there.
        """
        from daskdl.data.sources.tars import from_tar

        return cls(from_tar(urls, flat(endings), decode, on_error, storage_options))
