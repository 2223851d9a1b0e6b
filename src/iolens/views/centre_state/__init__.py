"""How results of `centre_state` are shown."""
