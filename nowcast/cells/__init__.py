"""Rain cells: outlined in each frame and followed along the motion."""

from nowcast.cells.track import Cell, track_cells

__all__ = ["Cell", "track_cells"]
