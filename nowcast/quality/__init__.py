"""The quality of sweeps: echo that is no rain found and taken out, step by step."""
