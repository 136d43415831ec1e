"""Commands: a file for each, with its options and its work; nowcast.cli puts them together."""
