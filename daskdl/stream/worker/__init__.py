"""On a worker: a session that reads, asks the model, writes and commits."""
