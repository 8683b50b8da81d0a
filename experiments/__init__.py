"""One run (`train`), many runs (`sweep`), and what they need: configuration, data, models."""
