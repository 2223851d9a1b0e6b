"""The newest studies of a store, for its report."""
