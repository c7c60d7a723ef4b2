"""Sources of jobs: logs of real systems and the generators of the papers."""
