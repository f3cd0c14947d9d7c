"""Machines that join a cluster."""

import pytest

from stele.errors import SteleError
from stele.fleet import cluster, joining


def test_different_versions_of_ray_are_told_with_all_lines_about_them():
    output = "Traceback\nRuntimeError: Version mismatch: The cluster has:\n    Ray: 2.60.0\n    Python: 3.11.9\n"
    reason = joining.reason_in(output)
    assert reason.startswith("RuntimeError: Version mismatch") and reason.endswith("Python: 3.11.9")
    message = "All nodes need the same versions of Ray and Python"
    with pytest.raises(SteleError, match=message), cluster.explained("Ray does not start on this machine"):
        raise RuntimeError(reason)
    assert joining.reason_in("usage\n\n  port is taken\n") == "port is taken"
    assert joining.reason_in("") == "it printed nothing"
