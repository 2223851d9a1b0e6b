"""What brought data into a store, when, and what was refused."""
