"""Tables that storage controllers export, in any layout the configuration describes."""
