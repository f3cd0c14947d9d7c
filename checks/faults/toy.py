"""A small package, toy 1.0, and an environment that is built from it without a network."""

import sys

from tests.support.wheels import wheel

HERE = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
SLOW = "import os, time\nif os.path.exists({!r}):\n    time.sleep(600)\n"


def describe_build(project):
    """Describe and lock an environment whose import sleeps while the file ``slow`` exists."""
    slow = project.folder / "slow"
    wheel(project.wheels, "toy", "1.0", SLOW.format(str(slow)))
    path = project.descriptions / "toy.toml"
    path.write_text(
        f'label = "Toy"\nframework = "toy"\nimports = ["toy"]\npython = "{HERE}"\n'
        '[requirements]\n"toy==1.0" = "the release"\n'
    )
    project.run("env", "lock", "toy")
    return slow
