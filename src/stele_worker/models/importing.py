"""Import the user's module without writing bytecode into the project."""

import importlib
import importlib.util
import os
import sys

from stele_worker.models.errors import SpecError, user_code

# the module of a model may ask a hub for weights, and nothing is downloaded; libraries read this when they are imported
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def stay_offline():
    for name in OFFLINE:
        os.environ.setdefault(name, "1")


def add_to_path(folder):
    if folder not in sys.path:
        sys.path.insert(0, folder)


def add_target_to_path(path):
    """If a file is a link, let it import the neighbours of what it leads to, as Python lets a script."""
    if os.path.islink(path):
        target = os.path.dirname(os.path.realpath(path))
        if target not in sys.path:
            sys.path.append(target)


def import_place(spec, folder, text):
    """Return the module that a Spec names, which can import the modules of the folder."""
    add_to_path(folder)
    return (import_file if spec.kind == "file" else import_module)(spec.place, folder, text)


def import_module(name, folder, text):
    add_target_to_path(os.path.join(folder, *name.split(".")) + ".py")
    with user_code(text, folder):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            # another name is missing inside of the user's module: that is the user's error, with its traceback
            if error.name and (name + ".").startswith(error.name + "."):
                message = "{!r}: there is no module {!r} in {} or among the installed packages."
                raise SpecError(message.format(text, error.name, folder)) from error
            raise


def import_file(path, folder, text):
    path = os.path.abspath(os.path.join(folder, path))
    if not os.path.isfile(path):
        reason = "{} is not a regular file" if os.path.exists(path) else "there is no file {}"
        raise SpecError("{!r}: {}.".format(text, reason.format(path)))
    root, name = os.path.dirname(path), os.path.basename(path)[: -len(".py")]
    while os.path.isfile(os.path.join(root, "__init__.py")):  # a package: its relative imports need its name
        root, parent = os.path.split(root)
        name = parent + "." + name
    add_to_path(root)
    add_target_to_path(path)
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == path:
        return loaded
    if "." in name:
        return import_module(name, folder, text)
    return execute(name if loaded is None else "stele_user_" + name, path, folder, text)


def execute(name, path, folder, text):
    """Return the module of a file, executed under ``name``."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look there
    with user_code(text, folder):
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module


def import_content(path, kind, text, folder):
    """Return the module of a recipe or a task of the user, whose project is on the import path."""
    if not os.path.isfile(path):
        raise SpecError("{}: there is no file {}.".format(text, path))
    levels = {"recipe": 3, "task": 2}[kind]  # recipes/<task>/torch.py and tasks/<task>.py
    project = path
    for _ in range(levels):
        project = os.path.dirname(project)
    stay_offline()
    add_to_path(folder)
    add_to_path(project)
    parts = os.path.relpath(path, project)[: -len(".py")].split(os.sep)
    name = "_".join(["stele_user"] + parts)
    if name in sys.modules and sys.modules[name].__file__ != path:
        del sys.modules[name]
    return execute(name, path, folder, text)
