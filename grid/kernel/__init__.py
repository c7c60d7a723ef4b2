"""Time and messages; knows nothing of grids."""
