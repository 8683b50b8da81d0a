"""Q2, time: how long training takes, to its end and to a perplexity."""
