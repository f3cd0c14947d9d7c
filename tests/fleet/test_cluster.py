"""The cluster of a fleet, without Ray."""

import os
import signal

import pytest

from stele.errors import SteleError
from stele.fleet import cluster


def test_a_missing_token_is_told():
    exceptions = pytest.importorskip("ray.exceptions")
    message = "Set RAY_AUTH_TOKEN to the token of the cluster"
    with pytest.raises(SteleError, match=message), cluster.explained("Cannot use the Ray cluster at auto"):
        raise exceptions.AuthenticationError("no token")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_at_the_end_of_a_call_of_ray(number):
    done, before = [], signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), cluster.postponed_signals():
        os.kill(os.getpid(), number)
        done.append("the call")
    assert done == ["the call"] and signal.getsignal(number) is before
