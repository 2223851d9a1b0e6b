"""How unevenly targets are used."""
