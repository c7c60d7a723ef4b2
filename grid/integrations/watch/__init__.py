"""A page in the browser that shows a finished run, or one in progress."""
