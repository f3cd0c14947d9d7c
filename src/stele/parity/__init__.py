"""Parity: golden numbers, the ladder, the examination of a recipe, accuracy bands, capabilities and defaults.

Does not import ``gate``, ``releases``, ``report`` or ``commands``.
"""
