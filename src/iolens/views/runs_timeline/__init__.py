"""Activity of one run by rank over time."""
