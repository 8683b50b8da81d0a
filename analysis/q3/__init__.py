"""Q3: throughput, bubbles and memory."""
