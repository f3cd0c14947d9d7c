"""The script of a bundle."""

import ast
from pathlib import Path

from stele.explain import bundle


def test_the_script_of_a_bundle_runs_on_python_3_6():
    source = (Path(bundle.__file__).with_name("reproduce.py")).read_text()
    ast.parse(source, feature_version=(3, 6))
