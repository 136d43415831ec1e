"""Skill of forecasters on real events, with nothing fitted on the radar that is scored."""
