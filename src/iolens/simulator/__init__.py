"""A synthetic centre with known parameters, so that every analysis can be checked against the truth."""
