"""Convolutions, their transposes, and padding."""
