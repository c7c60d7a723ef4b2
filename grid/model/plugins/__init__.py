"""Plugins: policies, selections, generators, metrics and others, all declared in one way.

A plugin is a class or function that takes its settings as keyword parameters. A scenario names it:

- by a name: of a built-in plugin, of an entry point of the group `grid.KIND` of an installed
  package, or of a Python object that was passed to `grid.run`;
- by its file: `path/to/file.py:Name` or `package.module:Name`.
"""
