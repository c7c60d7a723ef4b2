"""HTML reports of runs and sweeps: `grid report`."""
