"""The contract of a run folder: its files, their records, how they are written and read."""
