"""All that plugs in: policies, selections, generators, metrics and others, found in one way.

A part is a class or function that takes its settings as keyword parameters. A scenario names it:

- by a name: of a part of ours, of one that a package plugs in by an entry point of the group
  `grid.KIND`, or of a Python object that `grid.run` was given;
- by where it stands: `path/to/file.py:Name` or `package.module:Name`.
"""
