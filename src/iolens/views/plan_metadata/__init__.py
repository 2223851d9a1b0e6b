"""How results of `plan_metadata` are shown."""
