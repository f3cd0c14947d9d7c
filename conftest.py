"""Registers the shared fixtures and the options; each module of ``fixtures`` says what it holds."""

# a module stands below those that it imports
pytest_plugins = [
    "fixtures.options",
    "fixtures.progress",
    "fixtures.inputs",
    "fixtures.workers",
    "fixtures.runs",
    "fixtures.baselines",
]
