"""A copy of a store that can be published: what becomes of each column, pseudonyms, copying, and a search for leaks."""
