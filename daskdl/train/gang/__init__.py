"""The gang: members that run iterations on workers and exchange messages."""
