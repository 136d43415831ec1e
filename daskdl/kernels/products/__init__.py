"""Matrix products: BLAS, a micro-kernel, and products of packed weights."""
