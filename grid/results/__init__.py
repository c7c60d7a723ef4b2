"""What a run leaves behind: the table of jobs, metrics, digest, files."""
