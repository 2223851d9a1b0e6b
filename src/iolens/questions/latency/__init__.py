"""How long disk I/Os take."""
