"""Measuring: start workers, time recipes in them, and store the outcome as Runs.

Does not import ``parity``, ``gate``, ``releases``, ``report`` or ``commands``. Never imports a framework.
"""
