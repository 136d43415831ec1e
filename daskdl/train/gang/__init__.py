"""The gang: members that run iterations on workers and speak to each other."""
