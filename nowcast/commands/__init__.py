"""What each command of the command line does with its arguments."""
