"""How results of `imbalance` are shown."""
