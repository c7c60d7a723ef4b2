"""The results of a run: the table of jobs, metrics, digest, files."""
