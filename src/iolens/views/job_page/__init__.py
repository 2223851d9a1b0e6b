"""The page of one job, for the person who ran it."""
