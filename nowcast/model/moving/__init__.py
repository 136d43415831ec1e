"""Networks in the frame that moves with the rain: inputs, samples, networks and training."""
