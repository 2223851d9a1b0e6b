"""How unevenly targets are loaded."""
