"""The mode in which a framework executes: which ones it has, and whether it did what the mode says."""

import os

from stele_worker.protocol import SetupError

ON = ("1", "true", "yes", "on", "t", "y")  # values of a variable
required = True  # whether a framework that ignores the mode is an error


def resolve(name, module, settings):
    """Return settings in which "mode" is one of ``module.MODES``, by default the first; None if there are none.

    "tuned" is true by default. Without it, and without a mode, the user's variables decide how a framework executes.
    Raises ValueError if the mode is unknown.
    """
    global required
    required = settings.get("tuned", True) or bool(settings.get("mode"))
    known = tuple(getattr(module, "MODES", ()))
    mode = settings.get("mode") or next(iter(known), None)
    if mode is not None and mode not in known:
        message = "{} has no mode {!r}. It has: {}"
        raise ValueError(message.format(name, mode, ", ".join(known) or "none"))
    return dict(settings, mode=mode, tuned=settings.get("tuned", True))


def require_compiler(mode, variables):
    """Raise SetupError if one of these variables of the user disables the compiler, which the mode needs."""
    for name in variables if required else ():
        if os.environ.get(name, "").lower() in ON:
            message = (
                "{}={} disables the compiler, which mode {!r} needs. Unset {}, or measure a mode without it."
            )
            raise SetupError(message.format(name, os.environ[name], mode, name))


def check(mode, done, obeyed):
    """Return ``done``, what the framework reports. Raises RuntimeError if it did not do what the mode says."""
    if required and not obeyed:
        message = "the framework ignored mode {!r} without an error. It reports: {}"
        raise RuntimeError(message.format(mode, done))
    return done
