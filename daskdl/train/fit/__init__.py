"""A fit: the Trainer, its checks, its loop, and the checkpoints that it resumes from."""
