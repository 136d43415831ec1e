"""Matrix products: BLAS, our own micro-kernel, and products of packed weights."""
