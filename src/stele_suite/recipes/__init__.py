"""Recipes: a Task in a framework, about a page each, in ``recipes/<task>/<framework>.py``.

``stele_worker.frameworks.recipe`` is their contract. No recipe contains the augmentation: the framework's module draws
and applies it.
"""
