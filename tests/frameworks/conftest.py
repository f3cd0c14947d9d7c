"""Tests that need a framework in the process of the tests. Two frameworks cannot share one, so STELE_CHECK names it:

    STELE_CHECK=torch pytest tests/frameworks

runs every test that PyTorch needs. Without it these files are skipped, and not imported. ``scripts/models`` names
each framework in turn; then a test that is skipped fails, because it has checked nothing.
"""

import os

import pytest

NAMED = os.environ.get("STELE_CHECK")
ALL = ("torch", "jax", "tensorflow", "keras", "paddle")
# the frameworks in which a file runs
NEEDS = {
    "test_torch": ("torch",),
    "test_recipe_files": ("torch",),  # and in JAX, in processes of their own
    "test_jax": ("jax",),
    "test_tensorflow": ("tensorflow",),
    "test_keras": ("keras",),
    "test_keras_layouts": ("keras",),
    "test_paddle": ("paddle",),
    "test_tf_keras": ("tf_keras",),
    "test_cifar": ALL,
    "test_training_state": ALL,
}


class SkippedFile(pytest.File):
    """A file that is not imported, because it needs another framework."""

    def collect(self):
        names = NEEDS[self.path.stem]
        pytest.skip(
            f"needs {' or '.join(names)}: STELE_CHECK={names[0]} pytest tests/frameworks", allow_module_level=True
        )


def pytest_configure():
    known = {name for names in NEEDS.values() for name in names}
    if NAMED is not None and NAMED not in known:
        raise pytest.UsageError(f"STELE_CHECK names {NAMED!r}. Name one of: {', '.join(sorted(known))}.")


def pytest_pycollect_makemodule(module_path, parent):
    if NAMED not in NEEDS[module_path.stem]:
        return SkippedFile.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and NAMED is not None:
        report.outcome, report.longrepr = "failed", f"skipped, although STELE_CHECK names {NAMED}: {report.longrepr}"
    return report
