"""Pictures for people: boxes in images, and contact sheets of what a search found."""

from daskdl.plot.pictures import boxes, contact_sheet

__all__ = ["boxes", "contact_sheet"]
