"""``stele env`` as a user runs it."""

import pytest

from stele import environments
from stele.commands import env
from stele.measuring import devices

FOR_GPU = [name for name in environments.first_modes() if name.endswith("-cuda")]


@pytest.mark.parametrize("name", FOR_GPU)
def test_environments_for_a_gpu_are_locked_and_built_only_with_a_device(name, monkeypatch):
    environment = environments.load(name)
    assert environment.lock is not None and "--hash=sha256:" in environment.lock.read_text()
    monkeypatch.setattr(devices, "first", lambda: None)
    chosen = env.BuildOptions(selected=env.SelectOptions(all=True))
    assert env.skip_reason(environment, chosen) == "it needs an NVIDIA device"
    assert env.skip_reason(environment, env.BuildOptions()) is None
