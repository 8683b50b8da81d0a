"""Schedules on a simulated clock: the event loop, its results, and the timeline they form."""
