"""How the cost of disk I/Os changes over months, and targets that differ from their class, from telemetry."""
