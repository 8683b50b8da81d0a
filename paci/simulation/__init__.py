"""Schedules on a simulated clock: the event loop, its results and their timeline. No torch."""
