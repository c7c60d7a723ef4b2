"""Pictures and pages: what a run or a study looks like."""
