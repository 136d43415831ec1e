"""Search in packed binary codes by Hamming distance."""
