"""Commands: one file for each, with its options and its work; nowcast.cli combines them."""
