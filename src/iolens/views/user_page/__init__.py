"""The page of one user, for that user."""
