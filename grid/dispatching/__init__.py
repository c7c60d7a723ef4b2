"""Choices of the two levels of dispatchers."""
