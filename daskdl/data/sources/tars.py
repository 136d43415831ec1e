"""Tars: each archive is a partition, and its files of one name are a sample.

That is WebDataset's layout of shards: ``dog/0001.jpg`` and the following ``dog/0001.cls`` are the
picture and the class of sample ``dog/0001``. The name ends at the first dot after the last slash;
the rest, in small letters, is the ending.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.lazy.counting import Uncounted
from daskdl.data.nested import flat
from daskdl.data.on_workers.tasks import on_each
from daskdl.data.recipe import Arrays, Loadable, Recipe
from daskdl.data.sources.records import Records, check_on_error
from daskdl.data.sources.urls import expanded, opened, version_of
from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet

Decode = Callable[[bytes], Any]


#: Functions that read files, by their ending; all others stay bytes, uint8 (n,).
DECODERS: dict[str, Decode] = {
    "cls": int,
    "id": int,
    "index": int,
    "txt": lambda data: data.decode("utf-8").strip(),
    "npy": lambda data: np.load(io.BytesIO(data), allow_pickle=False),
}


@dataclass(frozen=True)
class Fields:
    """Fields of a sample: files by their endings, as in "jpg;png": the first one found.

    ``decode`` makes a value of a file's bytes; its default is :data:`DECODERS`.
    """

    endings: Mapping[str, str]
    decode: Mapping[str, Decode]

    def __post_init__(self) -> None:
        if not self.endings:
            raise SettingsError(
                "SampleSet.from_tar: expected the endings of files, such as x='jpg;png', found none"
            )
        other = sorted(set(self.decode) - set(self.endings))
        if other:
            raise SettingsError(
                f"decode: expected names among {sorted(self.endings)}, found {other}"
            )


#: Number of a file's ending in its field, the byte of the archive where it begins, its bytes.
File = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Tar(Recipe):
    """Recipe of the samples of an archive, in the version that was listed.

    ``files``, int64 (samples, fields, 3), has a :data:`File` each; its ending is -1 if there is
    none. ``broken`` says why the archive could not be read to its end.
    """

    url: str
    names: tuple[str, ...] = field(repr=False)
    files: NDArray[np.int64] = field(repr=False)
    fields: Fields
    on_error: str
    broken: str = ""
    version: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the files."""
        return int(self.files[..., 2].sum())

    @property
    def decodes(self) -> bool:
        """Whether the caller's functions make values of files."""
        return bool(self.fields.decode)

    def __len__(self) -> int:
        return len(self.names)

    def part(self, start: int, stop: int) -> Tar:
        """Return the recipe of the samples from ``start`` up to ``stop``; no others are read."""
        return replace(self, names=self.names[start:stop], files=self.files[start:stop])

    def load(self) -> Arrays:
        """Read the wanted files, in the archive's order."""
        names = [f"{self.url}, {name}" for name in self.names]
        # An archive without any may not be there at all.
        to_read = opened(self.url, self.storage_options, self.version) if names else nullcontext()
        with to_read as file:
            read = Records(partial(self._sample, file), self.on_error, names.__getitem__)
            arrays = read(range(len(names)))
        return replace(arrays, bad=(*arrays.bad, self.broken)) if self.broken else arrays

    def _sample(self, file: Any, i: int) -> dict[str, Any]:
        values = {}
        fields = self.fields.endings.items()
        for (name, endings), (which, start, size) in zip(fields, self.files[i], strict=True):
            if which < 0:
                raise DataError(
                    f"expected a file for {name}, *.{endings}, found none"
                    "; name other endings, or on_error='skip'"
                )
            ending = endings.lower().split(";")[which]
            decode = self.fields.decode.get(name, DECODERS.get(ending))
            data = _bytes(file, start, size)
            values[name] = np.frombuffer(data, np.uint8) if decode is None else decode(data)
        return values


def _bytes(file: Any, start: int, size: int) -> bytes:
    file.seek(start)
    data: bytes = file.read(size)
    if len(data) < size:
        raise DataError(f"expected {size} bytes, found {len(data)}: the archive breaks off")
    return data


@dataclass(frozen=True)
class Listing(Loadable):
    """Recipe that lists an archive: the names and places of its files make a :class:`Tar`."""

    url: str
    fields: Fields
    on_error: str
    storage_options: Mapping[str, Any] = field(repr=False)

    def load(self) -> Tar:
        """Read names and places."""
        names, broken, version = list[str](), "", ""
        files = list[list[File]]()
        try:
            with opened(self.url, self.storage_options) as file:
                version = version_of(file, self.url)
                self._list(file, names, files)
        except (OSError, tarfile.TarError, DataError) as error:
            broken = f"{self.url}: expected a whole tar archive, found that it is none ({error})"
            if self.on_error == "raise":
                raise DataError(
                    f"{broken}; on_error='skip' takes the {len(names)} samples that are there"
                ) from error
        places = np.array(files, np.int64).reshape(len(files), len(self.fields.endings), 3)
        return Tar(
            self.url,
            tuple(names),
            places,
            self.fields,
            self.on_error,
            broken,
            version,
            self.storage_options,
        )

    def _list(self, file: Any, names: list[str], files: list[list[File]]) -> None:
        choices = [endings.lower().split(";") for endings in self.fields.endings.values()]
        seen = set[str]()
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                folder, slash, base = member.name.rpartition("/")
                stem, _, ending = base.partition(".")
                if not member.isfile() or not stem or not ending:
                    continue
                name = folder + slash + stem
                if not names or names[-1] != name or ending in seen:
                    seen.clear()
                    names.append(name)
                    files.append([(-1, 0, 0)] * len(choices))
                seen.add(ending)
                for i, some in enumerate(choices):
                    which = some.index(ending.lower()) if ending.lower() in some else -1
                    if which >= 0 and not 0 <= files[-1][i][0] < which:
                        files[-1][i] = (which, member.offset_data, member.size)
            end = archive.offset
        # What was cut short between two files, or in a header, reads like a whole one otherwise.
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise DataError(f"no mark of its end at byte {end:,}")


def from_tar(
    cls: type[SampleSet],
    /,
    urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    decode: Mapping[str, Callable[[bytes], Any]] | None = None,
    on_error: str = "raise",
    storage_options: Mapping[str, Any] | None = None,
    **endings: str,
) -> SampleSet:
    """Make a set of tar archives as WebDataset has them; each is a partition.

    Consecutive files with one name are a sample: ``0001.jpg`` and ``0001.cls``; with an ending
    that was there already the next one begins. The workers list the archives at once, and read the
    files when they are needed.

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
    check_on_error(on_error)
    fields = Fields(flat(endings), decode or {})
    options = dict(storage_options or {})
    archives = expanded(urls, options, ".tar")
    listings = [Listing(url, fields, on_error, options) for url in archives]
    tars = on_each(listings, lambda tar, i: tar)  # on the workers, if there are any
    return cls([Uncounted(tar) for tar in tars] if on_error == "skip" else tars)
