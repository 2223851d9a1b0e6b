"""Applications beside each other, and one across core counts (N9)."""
