"""Beyond the runs: simulations, and published measurements of larger models."""
