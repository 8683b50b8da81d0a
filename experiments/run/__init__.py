"""One run: its folder, its pipeline, and what it does with them."""
