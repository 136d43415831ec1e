"""Products in the order of AMX's tiles: by its instructions, or with the same sums without them."""
