"""A model of the user, from a module, a library or a recipe file: its spec, and what both arms say of it."""
