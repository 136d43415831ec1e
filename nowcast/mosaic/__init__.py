"""Several radars in one map: merged by quality, and their calibrations compared."""
