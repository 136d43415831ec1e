"""Live: a folder of arriving scans is watched, each new scan is forecast from."""
