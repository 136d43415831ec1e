"""Pictures for people: boxes in images, and contact sheets of search results."""

from daskdl.plot.pictures import boxes, contact_sheet

__all__ = ["boxes", "contact_sheet"]
