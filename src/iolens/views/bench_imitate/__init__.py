"""How results of `bench imitate` are shown."""
