"""What the project claims of its speed, measured: ratios of two things in one run, a few rates and
times."""
