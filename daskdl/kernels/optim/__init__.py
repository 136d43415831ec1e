"""Update kernels of optim methods, over vectors and over rows of tables."""
