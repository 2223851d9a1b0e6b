"""Jobs and core-hours with a Darshan log."""
