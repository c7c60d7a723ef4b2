"""Where jobs come from: logs of real systems and the generators of the papers."""
