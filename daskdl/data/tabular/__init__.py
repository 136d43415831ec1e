"""Tables of mixed columns as samples: an encoder that is fitted in one pass over a DataFrame."""

from daskdl.data.tabular.encoder import TableEncoder

__all__ = ["TableEncoder"]
