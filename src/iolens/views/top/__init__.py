"""`iolens top`: the terminal view. `session` decides what is shown, the widgets only show it."""
