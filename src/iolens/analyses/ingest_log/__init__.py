"""What was ingested, batch by batch, and what was taken back."""
