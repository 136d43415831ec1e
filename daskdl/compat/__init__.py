"""Names of other packages that these do not promise, each with the version in which it was read.

When a release of dask, distributed, tornado, numba or llvmlite breaks one, its test in
``tests/daskdl/compat`` says which, and this folder is the one to mend.
"""
