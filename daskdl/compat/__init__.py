"""Uses of private names of other packages, each with the versions in which it was checked.

When a release of dask, distributed, tornado, numba or llvmlite breaks one, its test in
``tests/daskdl/compat`` fails, and the fix belongs in this folder.
"""
