"""Reports: format Runs, parity results, verdicts and lines over releases as terminal text, Markdown, JSON and JUnit.

May import every layer below. Does not import ``commands``.
"""
