import json
import subprocess

from stele.measuring import machine


def test_facts_are_json_and_include_the_processor():
    facts = machine.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["processors"] >= 1
    assert facts["processor"]


def test_without_nvidia_smi_there_are_no_gpus(monkeypatch):
    def run(*_, **__):
        raise FileNotFoundError("nvidia-smi")

    monkeypatch.setattr(machine.subprocess, "run", run)
    assert machine.gpus() == []


def test_each_gpu_is_described(monkeypatch):
    line = "NVIDIA H200, GPU-1234, 580.65.06, 143771 MiB, 1980 MHz, 700.00 W\n"
    answer = subprocess.CompletedProcess([], 0, stdout=line)
    monkeypatch.setattr(machine.subprocess, "run", lambda *_, **__: answer)
    [gpu] = machine.gpus()
    assert gpu["name"] == "NVIDIA H200"
    assert gpu["power.limit"] == "700.00 W"


def test_a_file_that_cannot_be_read_is_none():
    assert machine.read_text("/no/such/file") is None
