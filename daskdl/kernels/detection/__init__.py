"""Boxes of detectors: overlaps, matching with priors, hard negatives, suppression."""
