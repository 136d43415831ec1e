"""Products in the order of AMX's tiles: by its instructions, or by the same sums without them."""
