"""How worn flash drives are."""
