"""Core-hours lost to slow I/O, and which fix pays most."""
