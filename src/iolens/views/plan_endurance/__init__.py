"""How results of `plan_endurance` are shown."""
