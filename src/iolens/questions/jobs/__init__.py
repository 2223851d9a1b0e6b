"""Jobs of the scheduler, and what they did."""
