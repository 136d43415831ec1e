"""Commands of the command line: the work of each, from its arguments."""
