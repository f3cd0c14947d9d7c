"""How a test imports a script that is not in a package."""

import importlib.util
import sys


def load(path, name):
    """Import the file under a name of its own: several folders have a __main__.py."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
