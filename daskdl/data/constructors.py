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

    A name may have several arrays: a mapping in the place of an array, a column or a path, as in
    ``x={"age": ..., "words": ...}``. They become ``x.age`` and ``x.words``, see
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
        """Make a set of arrays in memory, Dask arrays, xarray's of either, or zarr arrays.

        Parameters
        ----------
        partitions : int, optional
            Number of partitions of nearly equal length, at most the number of samples. By default
            one for arrays in memory, and one for each chunk along the first axis of Dask and zarr
            arrays.
        **arrays : array_like, Ragged, dask.array.Array, DataArray or zarr.Array (n, ...)
            Arrays by name; for training ``x`` and ``y``, which may be tuples or mappings of several
            arrays. Other arrays are cut like a Dask array among them.

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
        """Make a set of the elements of a Dask Bag, with its partitions.

        Parameters
        ----------
        bag : dask.bag.Bag
        function : callable, optional
            From an element to a sample: a dict of arrays by name, a pair (x, y), or x. By default
            elements are samples already. Arrays whose first axes have different lengths become a
            :class:`~daskdl.data.Ragged` column.
        on_error : "raise" or "skip"
            What to do with an element that gives no sample, or a sample of another shape than most
            of its partition: raise a DataError that names it, or leave it out and name it in
            :attr:`SampleSet.bad`.
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
        """Make a set of the rows of a pandas or Dask DataFrame, with its partitions.

        Parameters
        ----------
        frame : pandas.DataFrame or dask.dataframe.DataFrame
        target : str, optional
            The column to predict from all others, which may hold numbers, words, dates and gaps. An
            encoder is fitted to them in one pass and kept as :attr:`encoder`; see
            :class:`daskdl.data.tabular.TableEncoder` and :class:`daskdl.models.TabularNet`.
        encoder : TableEncoder, optional
            An encoder that was fitted to another table, such as the training set.
        decode : mapping of name to callable, optional
            Makes an array of each value of a column, such as an image of bytes.
        on_error : "raise" or "skip"
            What to do with values that cannot be decoded, see :meth:`from_bag`.
        **fields : str or list of str
            A column for each name, or several that are stacked on a last axis, as in ``x=["age",
            "weight"], y="label"``. Columns of lists become Ragged.
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
        """Make a set of Parquet files; each row group is a partition, and workers read its columns.

        Parameters
        ----------
        urls : path or URL, or several
            Files, a folder, or a pattern with ``*``, in any store that fsspec knows.
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
        """Make a set of delayed objects or Futures; each is a partition.

        Parameters
        ----------
        values : sequence of dask.delayed.Delayed or distributed.Future
            Each is a dict of arrays by name, with a common first axis.
        function : callable, optional
            Makes such a dict of each value.
        lengths : sequence of int, optional
            Samples of each; by default the workers count them.
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
        """Make a set of the samples along a dimension of a Dataset, a DataArray or a zarr store.

        Parameters
        ----------
        data : path of a zarr store, Dataset or DataArray
        dim : str
            Dimension of the samples.
        partitions : int, optional
            By default one for each chunk.
        **fields : str or list of str
            Variables by name: ``x="image", y="label"``. Several, as in ``x=["u10", "v10"]``, are
            stacked on a last axis. Other dimensions keep the data's order. A DataArray is ``x`` by
            default.
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
        """Make a set of windows of arrays of any axes, such as a scene and its mask.

        Windows begin at every ``step``-th cell; cells after the last whole window are in none. A
        partition has the windows of a part of the arrays, some 64 MB, which is read once.

        Parameters
        ----------
        data : mapping of name to array, Dataset, DataArray or array; or a list of these
            Arrays of numpy, Dask, zarr or xarray; a single one is ``x``. An array without one of
            the window's axes is whole in every sample. Along these axes an array may be coarser or
            finer than the first array that has all. The scenes of a list may differ in size.
        window : mapping of name or number of an axis to int or None
            Cells of a window, such as ``{"y": 256, "x": 256}``; None stands for one cell of an axis
            that samples then lack. All other axes are whole, in the arrays' order.
        step : int or mapping of axis to int, optional
            By default a window's cells.
        where : array of bool, or callable, optional
            Keep windows with any true cell of an array over the windows' axes (for several scenes a
            list of arrays), or windows for which ``where(batch)``, (n,), is true. It is computed in
            one pass, at once.
        weights : str, array or callable, optional
            How often each window is drawn: the mean of an array over the window, or
            ``weights(batch)``, (n,). The name of an array of classes makes windows with rare
            classes more frequent. An epoch has as many samples as there are windows, each as often
            as its share of all weights, to within one; each epoch of a fit draws anew.
        seed : int
            Seed of the draw for everything but a fit: ``head``, ``map_batches``, an evaluation.
        partitions : int, optional
        **fields : str
            Variables of a Dataset by name, ``x="image", y="mask"``; by default all, as they are.

        Raises
        ------
        DataError
            When the arrays do not fit together, or no window is left.
        SettingsError
            When the window or the step does not fit the arrays.

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
        """Make a set of arrays of a zarr group; workers read it stretch by stretch.

        Parameters
        ----------
        url : path or URL
        partitions : int, optional
            By default a partition has whole chunks of the first array, some 64 MB.
        storage_options : mapping, optional
            For fsspec.
        **names : str
            Path of an array in the group for each name; the first axis is that of the samples.
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
        """Make a set of files; each file is a sample.

        Parameters
        ----------
        urls, on_error, storage_options :
            As for :meth:`from_parquet`.
        read : callable
            ``read(file)`` or ``read(file, url)``, from a file open in binary mode to a sample, see
            :meth:`from_bag`.
        partitions : int, optional
            By default partitions have 64 MB, if all samples are as large as the first.
        **columns : array_like (files, ...)
            Further arrays, such as ``y=labels``.
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
        """Make a set of tar archives as WebDataset has them; each is a partition.

        Consecutive files with one name are a sample: ``0001.jpg`` and ``0001.cls``. The workers
        list the archives at once, and read the files when they are needed.

        Parameters
        ----------
        urls, storage_options :
            As for :meth:`from_parquet`.
        decode : mapping of name to callable, optional
            Makes a value of a file's bytes. By default "cls", "id" and "index" are whole numbers,
            "txt" is text, "npy" an array, and everything else bytes, uint8.
        on_error : "raise" or "skip"
            What to do with samples that lack a file or cannot be decoded, and with archives that
            break off, see :meth:`from_bag`.
        **endings : str
            Ending of the file for each name, as in ``x="jpg;jpeg;png", y="cls"``: the first found.
        """
        from daskdl.data.sources.tars import from_tar

        return cls(from_tar(urls, flat(endings), decode, on_error, storage_options))
