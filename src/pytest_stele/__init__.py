"""The pytest plugin: measures models in fresh processes, checks what they compute, and reports to pytest-benchmark.

pytest imports ``plugin`` in every test run of the interpreter, so it imports nothing but pytest and the standard
library. All other modules are imported when a test, an option or a recipe file needs them.
"""
