"""Measurements of what the project claims of its speed: ratios of two things in one run, a few
rates and times."""
