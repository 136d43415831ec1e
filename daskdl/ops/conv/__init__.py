"""Convolutions over one, two and three axes, and their transposes."""
