"""How busy the metadata servers are."""
