"""What the project claims of its speed, measured: each a ratio of two things in one run."""
