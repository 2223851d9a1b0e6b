"""What a store holds, and what brought it."""
