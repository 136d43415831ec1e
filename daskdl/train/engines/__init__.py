"""Engines: what computes the iterations of a fit, in this process or on a cluster."""
