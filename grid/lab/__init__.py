"""Studies: a scenario under many settings and seeds, compared, drawn, repeatable."""
