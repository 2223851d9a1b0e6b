"""Projects beside each other, by their runs."""
