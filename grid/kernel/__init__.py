"""Time and messages, independent of grids."""
