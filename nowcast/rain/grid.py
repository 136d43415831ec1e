"""The Cartesian grid that rain is mapped on: a projection, an origin, a spacing and a size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    import xarray as xr

#: Spellings of the unit of a store's rain.
RATES = ("mm h-1", "mm/h", "mm h^-1", "mm hr-1")


@dataclass(frozen=True)
class Grid:
    """A regular grid of cells in a map projection; x and y increase with their index.

    Parameters
    ----------
    crs : str
        A projection in metres, in any form that ``pyproj.CRS`` reads (WKT, PROJ string).
    x0, y0 : float
        Centre of cell (0, 0), the south-western one, in metres.
    dx, dy : float
        Spacing in metres, positive.
    nx, ny : int
        Number of cells along x and y.

    Examples
    --------
    >>> grid = Grid.around(51.07, 5.41, size=(4, 4), spacing=1000.0)
    >>> grid.x.tolist()
    [-1500.0, -500.0, 500.0, 1500.0]
    """

    crs: str
    x0: float
    y0: float
    dx: float
    dy: float
    nx: int
    ny: int

    def __post_init__(self) -> None:
        if self.nx < 1 or self.ny < 1 or not (self.dx > 0 and self.dy > 0):
            raise SettingsError(
                f"grid: expected at least one cell and a positive spacing, found {self.ny} x "
                f"{self.nx} cells of {self.dy} x {self.dx} m; raise the number or the spacing"
            )

    @classmethod
    def around(
        cls,
        latitude: float,
        longitude: float,
        *,
        size: tuple[int, int],
        spacing: float,
        centre: tuple[float, float] | None = None,
        crs: str | None = None,
    ) -> Grid:
        """Return the grid around a radar, in its azimuthal-equidistant projection or another one.

        Parameters
        ----------
        latitude, longitude : float
            Site of the radar in degrees (WGS 84); the origin of the projection.
        size : (int, int)
            Number of cells (ny, nx).
        spacing : float
            Width and height of a cell in metres.
        centre : (float, float), optional
            Latitude and longitude of the middle of the grid, by default the radar's site. The
            projection stays the radar's, in which its beams are straight lines.
        crs : str, optional
            Another projection in metres, such as ``"EPSG:3035"`` or a PROJ string.

        Raises
        ------
        SettingsError
            When ``crs`` is not one, or is not defined at the middle of the grid.
        """
        ny, nx = size
        middle_x = middle_y = 0.0
        if crs is not None:
            crs, centre = _in_metres(crs), centre or (latitude, longitude)
        else:
            crs = f"+proj=aeqd +lat_0={latitude:.6f} +lon_0={longitude:.6f} +datum=WGS84 +units=m"
        if centre is not None:
            to_grid = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True)
            middle_x, middle_y = to_grid.transform(centre[1], centre[0])
            if not np.isfinite([middle_x, middle_y]).all():
                raise SettingsError(
                    f"grid: expected a centre where {crs[:60]} is defined, found {centre}; "
                    "give latitude first, then longitude, or another projection"
                )
        x0, y0 = middle_x - (nx - 1) / 2 * spacing, middle_y - (ny - 1) / 2 * spacing
        return cls(crs=crs, x0=x0, y0=y0, dx=spacing, dy=spacing, nx=nx, ny=ny)

    @classmethod
    def from_coordinates(cls, crs: str, x: NDArray[Any], y: NDArray[Any], *, where: str) -> Grid:
        """Return the grid of cell centres in metres: at least two, in equal positive steps."""
        axes: list[tuple[float, float]] = []
        for name, values in (("x", x), ("y", y)):
            steps = np.diff(np.asarray(values, dtype=np.float64))
            if steps.size == 0 or not steps.min() > 0 or np.ptp(steps) > 1e-3 * steps.mean():
                raise DataError(
                    f"{where}: expected {name} to increase in equal steps, found "
                    f"{np.asarray(values)[:4].tolist()}...; put the rain on a regular grid first"
                )
            axes.append((float(values[0]), float((values[-1] - values[0]) / steps.size)))
        (x0, dx), (y0, dy) = axes
        return cls(crs=crs, x0=x0, y0=y0, dx=dx, dy=dy, nx=len(x), ny=len(y))

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset, *, where: str = "dataset") -> Grid:
        """Return the grid of a dataset with ``crs``, ``x`` and ``y``, as in a rain store."""
        crs = dataset["crs"].attrs.get("crs_wkt") if "crs" in dataset.variables else None
        if not crs:
            raise DataError(
                f"{where}: expected a variable 'crs' with the attribute crs_wkt, found none; use a "
                "store that nowcast ingest wrote"
            )
        rain = dataset.variables.get("rain_rate")
        if rain is not None and (
            rain.dims[-2:] != ("y", "x") or rain.attrs.get("units") not in RATES
        ):
            raise DataError(
                f"{where}: expected rain_rate (..., y, x) in mm h-1, found {rain.dims} in "
                f"{rain.attrs.get('units')}; transpose and convert it, with its units"
            )
        return cls.from_coordinates(crs, dataset["x"].values, dataset["y"].values, where=where)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of cells (ny, nx)."""
        return self.ny, self.nx

    @cached_property
    def x(self) -> NDArray[np.float64]:
        """Centres of the cells along x, (nx,), metres."""
        return self.x0 + self.dx * np.arange(self.nx, dtype=np.float64)

    @cached_property
    def y(self) -> NDArray[np.float64]:
        """Centres of the cells along y, (ny,), metres."""
        return self.y0 + self.dy * np.arange(self.ny, dtype=np.float64)

    @cached_property
    def projection(self) -> pyproj.CRS:
        """The projection as a pyproj object."""
        return pyproj.CRS(self.crs)

    def from_degrees(self, *, own_ellipsoid: bool = False) -> Callable[..., tuple[Any, Any]]:
        """Return a function from longitude and latitude, of WGS 84 by default, to metres."""
        degrees = self.projection.geodetic_crs if own_ellipsoid else "EPSG:4326"
        return pyproj.Transformer.from_crs(degrees, self.projection, always_xy=True).transform

    def latitude_longitude(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return latitude and longitude of the cell centres, each (ny, nx), degrees."""
        return self._geographic(*np.meshgrid(self.x, self.y))

    def _geographic(
        self, x: NDArray[Any], y: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        transformer = pyproj.Transformer.from_crs(
            self.projection, self.projection.geodetic_crs, always_xy=True
        )
        longitude, latitude = transformer.transform(x, y)
        return latitude, longitude

    def matches(self, other: Grid) -> bool:
        """Return whether both grids have the same cells, to a twentieth of one at the corners."""
        if self == other or self.shape != other.shape:
            return self == other
        mine, theirs = self._corners(), other._corners()
        metres = np.hypot(
            (mine[0] - theirs[0]) * 111_200.0,
            (mine[1] - theirs[1]) * 111_200.0 * np.cos(np.radians(mine[0])),
        )
        return bool(np.all(metres < 0.05 * min(self.dx, self.dy)))

    def _corners(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x, y = np.meshgrid(self.x[[0, -1]], self.y[[0, -1]])
        return self._geographic(x, y)

    def __str__(self) -> str:
        middle_x, middle_y = (self.x[0] + self.x[-1]) / 2, (self.y[0] + self.y[-1]) / 2
        latitude, longitude = self._geographic(np.asarray(middle_x), np.asarray(middle_y))
        return (
            f"{self.ny} x {self.nx} cells of {self.dy:.6g} x {self.dx:.6g} m "
            f"around {float(latitude):.4f}, {float(longitude):.4f}"
        )


def _in_metres(crs: str) -> str:
    """Return a projection as WKT; raise a SettingsError if it is not in metres."""
    try:
        projection = pyproj.CRS(crs)
    except pyproj.exceptions.CRSError as error:
        raise SettingsError(
            f"grid: expected a projection such as EPSG:3035 or a PROJ string, found {crs!r}"
        ) from error
    if not projection.is_projected or projection.axis_info[0].unit_name != "metre":
        raise SettingsError(
            f"grid: expected a projection in metres, found {projection.name!r} in "
            f"{projection.axis_info[0].unit_name}; choose one such as EPSG:3035"
        )
    return projection.to_wkt()


#: Largest ratio of a cell's sides; cells on a grid in degrees are oblong.
MOST_OBLONG = 3.0


def grid_spacing(rain: xr.Dataset | xr.DataArray, where: str) -> tuple[float, float]:
    """Return the spacing of rows and of columns in m, negative where a coordinate falls.

    Raises DataError, which begins with ``where``, if there is one row or column.
    """
    spacing = []
    for name in ("y", "x"):
        values = rain[name].values
        if len(values) < 2:
            raise DataError(
                f"{where}: expected at least 2 cells along {name}, found {len(values)}; give a "
                "larger grid"
            )
        spacing.append(float(values[-1] - values[0]) / (len(values) - 1))
    return spacing[0], spacing[1]


def mean_spacing(rain: xr.Dataset | xr.DataArray, where: str) -> float:
    """Return the spacing of a grid in m: the side of a square with the area of a cell.

    Motion and windows need only one length of a pixel, since displacements are in pixels. Raises
    DataError as `grid_spacing` does, or if cells are longer than wide by more than `MOST_OBLONG`.
    """
    sides = [abs(side) for side in grid_spacing(rain, where)]
    long, short = max(sides), min(sides)
    if not 0 < long <= MOST_OBLONG * short:
        raise DataError(
            f"{where}: expected cells at most {MOST_OBLONG:g} times as long as wide, found "
            f"{sides[0]:g} m by {sides[1]:g} m; put the rain on another grid first"
        )
    return (long * short) ** 0.5
