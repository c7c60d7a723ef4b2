"""Validation against queueing theory: `grid verify`."""
