"""Load of metadata targets."""
