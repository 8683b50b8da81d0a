"""The points of an experiment's grid, and how its runs are started on this machine."""
