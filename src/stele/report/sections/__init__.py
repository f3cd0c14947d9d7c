"""Sections of a report, a module for each: its function returns the Section, or None if nothing was measured."""
