"""What one user ran in a window, on a page for that user: what it cost, day by day, and what to change."""
