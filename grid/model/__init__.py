"""The vocabulary of the emulator. Standard library and numpy only."""
