"""The subcommands of ``stele``, a module each: ``add(commands)`` says what can be typed, the rest does it."""
