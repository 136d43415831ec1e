"""Sources: recipes of samples in files, tables, databases and Dask's collections."""
