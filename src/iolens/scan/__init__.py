"""Walk a tree with several workers, count what lies in it, and put parts together; a collector, not a format."""
