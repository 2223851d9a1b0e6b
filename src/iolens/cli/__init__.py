"""Thin verbs, one module per verb, imported only when called: options, a call into `api`, what is shown."""
