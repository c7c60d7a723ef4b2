"""What connects the emulator to other tools: agents, exports, the live page."""
