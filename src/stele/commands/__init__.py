"""Commands: one module for each subcommand of ``stele``. ``add(commands)`` declares its arguments.

May import every layer below. No other package imports it; only ``stele.__main__`` does.
"""
