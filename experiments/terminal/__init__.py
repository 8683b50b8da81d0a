"""What a terminal shows: command lines and their errors, progress, one-line summaries."""
