"""Normalisations: batch, group, layer, length, local response."""
