"""A tuned application before and after."""
