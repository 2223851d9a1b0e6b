"""The last intervals of running targets, for `iolens top`."""
