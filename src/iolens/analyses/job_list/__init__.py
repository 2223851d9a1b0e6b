"""Jobs of a window, those that moved or did most first."""
