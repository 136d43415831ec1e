"""Weather-radar scans in, a trained network and verified rain forecasts out."""
