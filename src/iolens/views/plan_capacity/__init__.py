"""How results of `plan_capacity` are shown."""
