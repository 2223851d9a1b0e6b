"""Thin verbs, one module per verb group, imported only when called."""
