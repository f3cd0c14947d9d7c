"""Models, tasks and recipes of the user: what the command line says about them, as the worker receives it.

Nothing here imports or runs the user's code: that happens in the worker alone, which receives specs and paths as text.
"""
