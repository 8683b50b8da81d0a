"""The terminal: command lines and their errors, progress, one-line summaries."""
