"""Pictures for people: boxes in images, and contact sheets of what a search found."""

from daskdl.plot.boxes import boxes
from daskdl.plot.contact_sheet import contact_sheet

__all__ = ["boxes", "contact_sheet"]
