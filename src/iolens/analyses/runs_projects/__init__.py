"""Projects beside each other, by their runs: bytes, performance per node, characteristics, access sizes."""
