"""Raw counters become intervals: differences between samples, what a target can move at most, and rows of tables."""
