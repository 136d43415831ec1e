"""The quality of sweeps: steps that find and remove echo that is no rain."""
