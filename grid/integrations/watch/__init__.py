"""A page in the browser that shows a run: one that is over, or one that goes on."""
