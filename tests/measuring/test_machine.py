from types import SimpleNamespace

import psutil
from msgspec.structs import replace

from stele import schema
from stele.measuring import machine


def test_facts_are_json_and_include_the_processor():
    facts = machine.facts()
    assert schema.convert(schema.parse(schema.encode(facts)), machine.Machine) == facts
    assert facts.processors >= 1
    assert facts.processor


def test_a_gpu_is_a_part_of_the_fingerprint(nvml):
    assert [gpu["uuid"] for gpu in machine.fingerprint(machine.facts()).gpus] == ["GPU-0", "GPU-1"]


def test_a_file_that_cannot_be_read_is_none():
    assert machine.read_text("/no/such/file") is None


def test_a_container_limits_the_memory(monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=8192 * 1024))
    files = {"/sys/fs/cgroup/memory.current": "1024"}
    monkeypatch.setattr(machine, "read_text", files.get)
    assert machine.available_memory() == 8192 * 1024
    files["/sys/fs/cgroup/memory.max"] = "max"
    assert machine.available_memory() == 8192 * 1024
    files["/sys/fs/cgroup/memory.max"] = "5120"
    assert machine.available_memory() == 4096


def test_the_name_of_a_machine_does_not_depend_on_its_load():
    facts = machine.facts()
    assert machine.name_of(replace(facts, load=9.0)) == machine.name_of(facts)
    assert machine.name_of(replace(facts, memory=1)) != machine.name_of(facts)
