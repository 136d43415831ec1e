"""Recurrent networks: cells in one pass over memory, and whole sequences."""
