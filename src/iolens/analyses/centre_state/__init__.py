"""File systems of a store: what they are made of, since when they are observed, how full they are."""
