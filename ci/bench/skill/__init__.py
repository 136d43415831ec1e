"""Skill of forecasters on real events, each judged by what never saw its radar."""
