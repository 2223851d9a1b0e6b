"""What the rest of `api` stands on: a store with its analyses, and who hears what happens meanwhile."""
