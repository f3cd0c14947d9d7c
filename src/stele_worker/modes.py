"""The mode in which a framework executes: which ones it has, and whether it did what the mode says."""


def find(framework, known, settings):
    """Return the requested mode, by default the first of ``known``. Raises ValueError if it is unknown."""
    mode = settings.get("mode") or next(iter(known))
    if mode not in known:
        message = "{} has no mode {!r}. It has: {}"
        raise ValueError(message.format(framework, mode, ", ".join(known)))
    return mode


def check(mode, done, obeyed):
    """Return ``done``, what the framework reports. Raises RuntimeError if it did not do what the mode says."""
    if not obeyed:
        message = "the framework ignored mode {!r} without an error. It reports: {}"
        raise RuntimeError(message.format(mode, done))
    return done
