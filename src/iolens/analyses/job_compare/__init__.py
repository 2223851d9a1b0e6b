"""Like jobs before and after a change: which RPC sizes moved, and whether that is more than chance (N3)."""
