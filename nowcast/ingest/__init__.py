"""Ingest: radar scans in, a rain store out."""
