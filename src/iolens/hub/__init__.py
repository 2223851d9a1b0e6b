"""Samples that agents push: kept on disk as they arrive, then committed to the store in batches by one writer."""
