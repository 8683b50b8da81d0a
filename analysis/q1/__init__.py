"""Q1, stability: the drift of the weights, and what it costs."""
