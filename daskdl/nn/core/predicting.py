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

        The model works in inference and is left as it is. What Dask holds stays there: the result
        is lazy and has the same partitions, each computed where its samples are. The weights, as
        they are now, are sent to every worker of the current client once; graphs have their key.

        Parameters
        ----------
        samples : array (N, ...), or a dask Array, dask or pandas DataFrame, dask Bag, xarray \
                DataArray or Dataset, SampleSet
            Rows of a DataFrame have the model's inputs as columns. Elements of a Bag are arrays or
            numbers, or dicts with such an ``x``. The first dimension of a DataArray is that of the
            samples; of a Dataset it is the variable ``x``, or the only one.
        batch_size : int, optional
            Samples that pass through the model at a time; by default so many that the largest array
            between two layers takes about 32 MB.
        threads : int, optional
            Arithmetic threads: of a task 1 by default, here as many as there are cores.
        dims : sequence of str, optional
            For a DataArray or Dataset: names of the result's axes after the first. Coordinates of
            these names and lengths are kept.
        precision : "float32", "bf16" or "int8"
            "bf16" rounds what is multiplied in convolutions, affine maps, recurrent layers and
            attention to bfloat16; sums and all else stay float32. "int8" makes sure that the model
            is one of :func:`daskdl.quantize`, which computes so without being asked.
        client : distributed.Client, optional
            Whose workers compute, by default the current client's for what Dask holds. Samples in
            memory go to the workers if one is given, and their results come back; lazy results of
            a client that is not the current one are computed by ``client.compute(result)``. With
            False no cluster is asked: lazy results then carry the weights in their graph.
        tile : mapping of axes to cells, optional
            Then ``samples`` is a scene, such as ``{"y": 512, "x": 512}`` of a DataArray, or
            ``{0: 512, 1: 512}`` of an array of numpy, Dask or zarr, a memmap, or the path of a
            GeoTIFF (rows, columns, bands). It passes through the model tile by tile; the result is
            a scene with the same axes, lazy unless this one is in memory, and does not depend on
            chunks and workers.
        overlap : "auto", "field" or int
            Of a scene: "auto" reads as much around each tile as gives the bits of the whole scene
            in one pass, "field" what the network sees, which gives them but for rounding and reads
            less. A number is the cells to each side, for any network: the tiles, which start at
            the scene's origin, then define the result.
        blend : "none", "linear" or "cosine"
            Of a scene with an ``overlap`` in cells: how tiles fade into their neighbours.
        channel : name or number of an axis, optional
            Of a scene, where more than one axis is not tiled; those that are left are samples.
        out : path or URL, or a mapping of names or numbers of several results to them, optional
            Of a scene: a path or URL of a zarr array, which is written tile by tile where the tiles
            are computed, and is returned. A call that was cut off goes on: of the same model and
            tiles, chunks that are there are kept unless the scene's cells have changed. Memory of a
            worker is told before, and progress while it runs. A path that ends with ``.tif`` is
            that of a Cloud-optimised GeoTIFF, which has the scene's place on the earth.
        nodata : float, optional
            Of a scene: the number, or nan, of cells without data in all channels. They are read as
            0, and the result is nan there, or class -1; tiles without any data are not computed.
            By default that of a GeoTIFF.
        boundary : "reflect", "symmetric", "edge" or "wrap", optional
            Of a scene: what lies around it, as :func:`numpy.pad` has it, as far as the network or
            the ``overlap`` reaches; by default what the network's own layers pad with.

        Returns
        -------
        The same kind; a tuple or dict of them where the model returns several. Of a DataFrame one
        with columns 0, 1, ..., or a Series when there is one number a row; of a Dataset one with
        the variable ``prediction``; of a SampleSet a dask Array with a chunk for each partition.

        Raises
        ------
        DataError, SettingsError, ShapeError
            When something does not fit together; of a lazy result before any task is started.
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
        """Return the index of the largest score of each sample, int64, as :meth:`predict` does."""
        return UPPER["predict"]().predict(self, samples, classes=True, **options)

    def embed(self, samples: Any, layer: str, **options: Any) -> Any:
        """Return the results of an inner layer for samples, in the form of :meth:`predict`.

        Parameters
        ----------
        samples :
        layer : str
            Its dotted name, as :meth:`summary` has it. No layer after it is computed. Of a layer
            that is called several times it is the first result.
        **options :
            Those of :meth:`predict`.
        """
        return UPPER["predict"]().predict(self, samples, layer=layer, **options)

    def evaluate(self, samples: Any, metrics: Any = (), **options: Any) -> dict[str, float]:
        """Return metrics of all samples together, exact for any partitions, by name.

        Parameters
        ----------
        samples : SampleSet, arrays (N, ...), of Dask too, or a DataFrame of pandas or Dask
            Of ``x`` and ``y``, and ``sample_weight`` if they do not all count the same.
        metrics : sequence of daskdl.metrics.Metric, or mapping of names to them
        **options :
            ``y``, the targets or the name of their column, unless samples have their own;
            ``loss``, whose mean over the samples is returned as well; and those of
            :meth:`daskdl.train.Trainer.evaluate`.
        """
        return UPPER["predict"]().evaluate(self, samples, metrics, **options)
