"""Products of int8 numbers, with int32 sums that are the same integers on every processor."""
