"""Wear, writes and remaining life of drives."""
