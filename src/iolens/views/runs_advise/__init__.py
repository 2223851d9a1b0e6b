"""What to change first, over one run or many."""
