"""Prediction as methods of a module, for samples in memory or on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from daskdl.upper import UPPER


class Predicting:
    """Base of modules: prediction and evaluation of samples of any kind."""

    def predict(
        self,
        samples: Any,
        *,
        batch_size: int | None = None,
        threads: int | None = None,
        dims: Sequence[str] | None = None,
        precision: str = "float32",
        client: Any = None,
        tile: Mapping[Any, int] | None = None,
        overlap: int | str = "auto",
        blend: str = "none",
        channel: Any = None,
        out: Any = None,
        nodata: float | None = None,
        boundary: str | None = None,
    ) -> Any:
        """Return the results for samples, as the same kind of collection.

        The model runs in inference, and does not change. Results of Dask's collections are lazy,
        with the same partitions, each computed where its samples are. The current weights are sent
        to every worker of the current client once; graphs refer to them by a key.

        Parameters
        ----------
        samples : array (N, ...), or a dask Array, dask or pandas DataFrame, dask Bag, xarray \
                DataArray or Dataset, SampleSet
            A DataFrame's columns are the model's inputs. Elements of a Bag are arrays, numbers, or
            dicts with one of these as ``x``. A DataArray's first dimension counts the samples. A
            Dataset's input is the variable ``x``, or its only one.
        batch_size : int, optional
            Samples that pass through the model together; by default the largest array between two
            layers then takes about 32 MB.
        threads : int, optional
            Arithmetic threads; by default 1 in a task, and all cores in this process.
        dims : sequence of str, optional
            For a DataArray or Dataset: names of the result's axes after the first. Coordinates of
            these names and lengths are kept.
        precision : "float32", "bf16" or "int8"
            "bf16" rounds the factors of products to bfloat16 in convolutions, affine maps,
            recurrent layers and attention; sums and everything else stay float32. "int8" checks
            that the model comes from :func:`daskdl.quantize`; such a model always computes in int8.
        client : distributed.Client, optional
            Client whose workers compute; by default the current client for Dask's collections. If
            it is given, samples in memory go to the workers and their results come back. If it is
            not the current client, compute lazy results by ``client.compute(result)``. With False
            no cluster is used: lazy results have the weights in their graph.
        tile : mapping of axes to cells, optional
            Cells of a tile, which make ``samples`` a scene: ``{"y": 512, "x": 512}`` for a
            DataArray, ``{0: 512, 1: 512}`` for an array of numpy, Dask or zarr, a memmap, or the
            path of a GeoTIFF (rows, columns, bands). It passes through the model tile by tile. The
            result is a scene with the same axes, lazy unless the scene is in memory, and does not
            depend on chunks and workers.
        overlap : "auto", "field" or int
            For a scene. "auto" reads enough around each tile for the bits of one pass over the
            whole scene. "field" reads the receptive field: less, and with the same result up to
            rounding. A number of cells to each side works for any network; the result then depends
            on the tiles, which start at the scene's origin.
        blend : "none", "linear" or "cosine"
            For a scene with an ``overlap`` in cells: how tiles fade into their neighbours.
        channel : name or number of an axis, optional
            For a scene with several axes without tiles: the axis of the channels; the others are
            samples.
        out : path or URL, or a mapping of names or numbers of several results to them, optional
            For a scene: path or URL of a zarr array, which the computing workers write tile by
            tile, and which is returned. If a call was cut off, the same call resumes: for the same
            model and tiles it keeps chunks whose cells have not changed. The call announces a
            worker's memory, and shows progress. A path that ends with ``.tif`` gives a
            Cloud-optimised GeoTIFF with the scene's place on the earth.
        nodata : float, optional
            For a scene: value, maybe nan, of cells without data in all channels. They are read as
            0, and the result is nan there, or class -1; tiles without any data are not computed. By
            default a GeoTIFF's own value.
        boundary : "reflect", "symmetric", "edge" or "wrap", optional
            For a scene: padding around it as in :func:`numpy.pad`, as far as the network or the
            ``overlap`` reaches; by default the network's own layers pad.

        Returns
        -------
        The same kind; a tuple or dict if the model returns several. For a DataFrame a DataFrame
        with columns 0, 1, ..., or a Series if there is one number a row; for a Dataset one with the
        variable ``prediction``; for a SampleSet a dask Array with a chunk for each partition.

        Raises
        ------
        DataError, SettingsError, ShapeError
            When arguments do not fit together; for a lazy result before any task is started.
        PredictionError
            For an exception in a task, with the partition and the worker.
        """
        tiling = {
            "overlap": overlap, "blend": blend, "channel": channel, "out": out, "nodata": nodata,
            "boundary": boundary,
        }  # fmt: skip
        usual = tile is None and [*tiling.values()] == ["auto", "none", None, None, None, None]
        return UPPER["predict"]().predict(
            self, samples, batch_size=batch_size, threads=threads, dims=dims, precision=precision,
            client=client, tile=tile, **({} if usual else tiling),
        )  # fmt: skip

    def predict_class(self, samples: Any, **options: Any) -> Any:
        """Return the index of the largest score of each sample, int64; as :meth:`predict`."""
        return UPPER["predict"]().predict(self, samples, classes=True, **options)

    def embed(self, samples: Any, layer: str, **options: Any) -> Any:
        """Return the results of an inner layer for samples, in the form of :meth:`predict`.

        Parameters
        ----------
        samples :
        layer : str
            Dotted name, as in :meth:`summary`. Layers after it are not computed. If the layer is
            called several times, the first result counts.
        **options :
            Options of :meth:`predict`.
        """
        return UPPER["predict"]().predict(self, samples, layer=layer, **options)

    def evaluate(self, samples: Any, metrics: Any = (), **options: Any) -> dict[str, float]:
        """Return metrics of all samples together, exact for any partitions, by name.

        Parameters
        ----------
        samples : SampleSet, arrays (N, ...), of Dask too, or a DataFrame of pandas or Dask
            Samples of ``x`` and ``y``, and ``sample_weight`` if they count differently.
        metrics : sequence of daskdl.metrics.Metric, or mapping of names to them
        **options :
            ``y``: targets, or the name of their column, unless samples have them. ``loss``: its
            mean over the samples is returned, too. Further options of
            :meth:`daskdl.train.Trainer.evaluate`.
        """
        return UPPER["predict"]().evaluate(self, samples, metrics, **options)
