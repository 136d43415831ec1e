"""Live: a watch over arriving scans, which forecasts from each new one."""
