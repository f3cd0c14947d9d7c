"""Profiles of releases with one operation that is slower."""

import pytest

from stele import __main__ as entry_point

SECONDS = [0.5, *[0.010, 0.011, 0.012] * 16]
SLOWER = [0.5, *[0.020, 0.021, 0.022] * 16]
PROFILE = {
    "step": 0.012,
    "busy": 0.009,
    "operations": {"conv": [0.008, 2.0], "relu\u001b[31m": [0.001, 1.0]},
    "kernels": {"oneDNN convolution": "brgconv (8)", "same": "jit (1)"},
}
SLOWER_PROFILE = {
    "step": 0.022,
    "busy": 0.019,
    "operations": {"conv": [0.018, 2.0], "add": [0.001, 30.0]},
    "kernels": {"oneDNN convolution": "ref (8)", "same": "jit (1)"},
}


@pytest.fixture
def explain(add_environment, tmp_path):
    """explain(*options, old={...}, new={...}) -> exit code of stele explain in scripted environments."""

    def explain(*options, old=None, new=None, command="explain"):
        table = {"release": "1.0", "table": {"seed": "0"}}
        add_environment("old", **{"seconds": SECONDS, "profile": PROFILE, **table, **(old or {})})
        add_environment("new", **{"seconds": SLOWER, "profile": SLOWER_PROFILE, **table, **(new or {})})
        return entry_point.main([command, "old", "new", "--task=gru", "--phase=infer", "--worker-timeout=20", *options])

    return explain
