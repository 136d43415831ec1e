"""Products of int8 numbers; their int32 sums are the same integers on every processor."""
