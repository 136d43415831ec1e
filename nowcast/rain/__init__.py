"""Rain on a grid in time: the store, its grid and its CF attributes."""
