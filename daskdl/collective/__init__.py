"""Numbers added up and handed round between workers: numpy in, numpy out; no models, no samples."""
