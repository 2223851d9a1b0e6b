"""How results of `plan_performance` are shown."""
