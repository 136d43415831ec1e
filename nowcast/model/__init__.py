"""Networks that forecast: what they are, how they are trained and kept."""
