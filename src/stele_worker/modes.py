"""The mode in which a framework executes: which ones it has, and whether it did what the mode says."""

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


def check(mode, done, obeyed):
    """Return ``done``, what the framework reports. Raises RuntimeError if it did not do what the mode says."""
    if required and not obeyed:
        message = "the framework ignored mode {!r} without an error. It reports: {}"
        raise RuntimeError(message.format(mode, done))
    return done
