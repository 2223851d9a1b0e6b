"""What disk I/Os cost, by the telemetry that is stored."""
