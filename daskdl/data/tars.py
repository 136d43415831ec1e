"""Tars: archives of which each is a partition, and files of one name in it are a sample.

That is how WebDataset lays out what it calls shards: ``dog/0001.jpg`` and ``dog/0001.cls``, one
behind the other, are the picture and the class of sample ``dog/0001``. The name goes up to the
first dot behind the last slash; what follows, in small letters, is the ending.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.counting import Uncounted
from daskdl.data.partition import Arrays, Recipe
from daskdl.data.records import Records, check_on_error
from daskdl.data.tasks import on_each
from daskdl.data.urls import expanded, opened
from daskdl.errors import DataError, SettingsError

Decode = Callable[[bytes], Any]


def as_bytes(data: bytes) -> NDArray[np.uint8]:
    """Return a file as it is, uint8 (bytes,)."""
    return np.frombuffer(data, np.uint8)


def as_text(data: bytes) -> str:
    """Return a file of text, without white space around it."""
    return data.decode("utf-8").strip()


def as_array(data: bytes) -> NDArray[Any]:
    """Return a file of an array as numpy writes it."""
    array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return array


#: What is made of files by their ending; of all others :func:`as_bytes`.
DECODERS: dict[str, Decode] = {
    "cls": int, "id": int, "index": int, "txt": as_text, "npy": as_array,
}  # fmt: skip


@dataclass(frozen=True)
class Fields:
    """What a sample has: files by their endings, and what is made of each.

    Parameters
    ----------
    endings : mapping of name to endings
        As "jpg;png": the first of these that there is.
    decode : mapping of name to callable
        From a file's bytes to a value, where not as :data:`DECODERS` has it.
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

    def value(self, name: str, ending: str, data: bytes) -> Any:
        """Return what a file holds."""
        return self.decode.get(name, DECODERS.get(ending, as_bytes))(data)

    def chosen(self, found: Container[str]) -> dict[str, str | None]:
        """Return the ending that serves for each name, of those of one sample."""
        return {
            name: next((ending for ending in endings.lower().split(";") if ending in found), None)
            for name, endings in self.endings.items()
        }


#: Where a file's bytes begin in the archive, and how many they are.
Place = tuple[int, int]


@dataclass(frozen=True)
class Tar:
    """Recipe of the samples of an archive.

    Parameters
    ----------
    url : str
    names : tuple of str
        Of the samples.
    places : tuple of mapping of ending to place
        Of the files of each.
    fields : Fields
    on_error : "raise" or "skip"
    broken : str
        Why the archive could not be read to its end.
    storage_options : mapping
    """

    url: str
    names: tuple[str, ...] = field(repr=False)
    places: tuple[dict[str, Place], ...] = field(repr=False)
    fields: Fields
    on_error: str
    broken: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    in_memory = False

    @property
    def nbytes(self) -> int:
        """Bytes of the files that are used."""
        used = ((of, self.fields.chosen(of).values()) for of in self.places)
        return sum(of[ending][1] for of, endings in used for ending in endings if ending)

    def __len__(self) -> int:
        return len(self.names)

    def part(self, start: int, stop: int) -> Tar:
        """Return the recipe of the samples from ``start`` up to ``stop``; no others are read."""
        return replace(self, names=self.names[start:stop], places=self.places[start:stop])

    def load(self) -> Arrays:
        """Read the files that are wanted, in their order in the archive."""

        def named(i: int) -> str:
            return f"{self.url}, {self.names[i]}"

        with opened(self.url, self.storage_options) as file:

            def sample(i: int) -> dict[str, Any]:
                places, values = self.places[i], {}
                for name, ending in self.fields.chosen(places).items():
                    if ending is None:
                        wanted = self.fields.endings[name]
                        raise DataError(
                            f"expected a file for {name} that ends in {wanted}, found "
                            f"{', '.join(sorted(places))}"
                        )
                    values[name] = self.fields.value(name, ending, _bytes(file, places[ending]))
                return values

            found = Records(sample, self.on_error, named)(range(len(self)))
        return replace(found, bad=(*found.bad, self.broken)) if self.broken else found


def _bytes(file: Any, place: Place) -> bytes:
    start, size = place
    file.seek(start)
    data: bytes = file.read(size)
    if len(data) < size:
        raise DataError(f"expected {size} bytes, found {len(data)}: the archive breaks off")
    return data


@dataclass(frozen=True)
class Listing:
    """Recipe of the recipe of an archive: to read the names and places of its files."""

    url: str
    fields: Fields
    on_error: str
    storage_options: Mapping[str, Any] = field(repr=False)

    in_memory = False
    nbytes = 0

    def load(self) -> Tar:
        """Read them."""
        names, places = list[str](), list[dict[str, Place]]()
        broken = ""
        try:
            with opened(self.url, self.storage_options) as file:
                self._list(file, names, places)
        except (OSError, tarfile.TarError, DataError) as error:
            broken = f"{self.url}: expected a whole tar archive, found that it is none ({error})"
            if self.on_error == "raise":
                raise DataError(
                    f"{broken}; on_error='skip' takes the {len(names)} samples that are there"
                ) from error
        return Tar(
            self.url, tuple(names), tuple(places), self.fields, self.on_error, broken,
            self.storage_options,
        )  # fmt: skip

    def _list(self, file: Any, names: list[str], places: list[dict[str, Place]]) -> None:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                folder, slash, base = member.name.rpartition("/")
                stem, _, ending = base.partition(".")
                if not member.isfile() or not stem or not ending:
                    continue
                name = folder + slash + stem
                if not names or names[-1] != name:
                    names.append(name)
                    places.append({})
                places[-1][ending.lower()] = (member.offset_data, member.size)
            end = archive.offset
        # What was cut short between two files, or in a header, reads like a whole one otherwise.
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise DataError(f"no mark of its end at byte {end:,}")


def from_tar(
    urls: Any, fields: Fields, on_error: str, storage_options: Mapping[str, Any] | None
) -> list[Recipe]:
    """Return a recipe for each archive; see :meth:`SampleSet.from_tar`."""
    check_on_error(on_error)
    options = dict(storage_options or {})
    found = expanded(urls, options, ".tar")
    listings: list[Any] = [Listing(url, fields, on_error, options) for url in found]
    tars = on_each(listings, lambda tar, i: tar)  # on the workers, if there are any
    return [Uncounted(tar) for tar in tars] if on_error == "skip" else tars
