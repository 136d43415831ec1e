"""Skill of forecasters on real events, compared with pysteps' on the same pixels and times."""
