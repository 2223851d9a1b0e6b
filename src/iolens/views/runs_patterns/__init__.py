"""How runs share files, by their size."""
