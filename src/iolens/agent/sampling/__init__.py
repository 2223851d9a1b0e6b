"""Sample counters into a spool, and ship it into the store."""
