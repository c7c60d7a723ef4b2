"""The six entities of a grid, written once as message handlers."""
