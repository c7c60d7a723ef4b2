"""What everything in the emulator speaks of. Standard library and numpy only."""
