"""How results of `source_list` are shown."""
