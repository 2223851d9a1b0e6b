"""Mathematics with no I/O: transaction time and what follows from it."""
