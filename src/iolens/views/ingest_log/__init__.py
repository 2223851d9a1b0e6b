"""How results of `ingest_log` are shown."""
