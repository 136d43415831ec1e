"""The folder of a trained model, of either frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from daskdl.errors import DataError
from nowcast.model.model import FILE, NowcastModel
from nowcast.model.moving.model import MovingModel

Model: TypeAlias = NowcastModel | MovingModel


def load_model(folder: Path) -> Model:
    """Read a model that ``nowcast train`` wrote.

    Raises
    ------
    DataError
        When there is no model in the folder, or another program's.
    """
    import daskdl.models  # noqa: F401  (makes the networks' classes known)
    from daskdl.nn import load, read_metadata

    path = folder / FILE if folder.is_dir() else folder
    if not path.is_file():
        raise DataError(
            f"{folder}: expected a model that nowcast train wrote, found no {FILE}; "
            "give the folder that was its --out"
        )
    network: Any = load(path)
    metadata = read_metadata(path)
    try:
        if metadata.get("frame") == "moving":
            return MovingModel.of(network, metadata)
        return NowcastModel.of(network, metadata)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: expected a model that nowcast train wrote, found one without {error}; "
            "train it again with this version"
        ) from error
