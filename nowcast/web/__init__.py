"""A page and an interface for programs that show a folder of forecasts, read-only."""
