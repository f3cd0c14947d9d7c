import threading

import pytest

from stele.measuring import energy


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """packages({name: microjoules}) writes the counters of RAPL."""
    monkeypatch.setattr(energy, "PACKAGES", tmp_path)

    def packages(counts, span=1000):
        for number, (name, count) in enumerate(counts.items()):
            folder = tmp_path / f"intel-rapl:{number}"
            folder.mkdir(exist_ok=True)
            facts = {"name": name, "energy_uj": count, "max_energy_range_uj": span - 1}
            for file, value in facts.items():
                (folder / file).write_text(f"{value}\n")

    return packages


def test_the_energy_of_all_processor_packages_is_counted_and_of_their_parts_it_is_not(packages):
    packages({"package-0": 100, "package-1": 200, "dram": 0})
    with energy.metered("cpu") as joules:
        packages({"package-0": 400, "package-1": 300, "dram": 500})
        assert joules() == {"processors": pytest.approx(400e-6)}


def test_a_counter_that_starts_again_is_counted_on(packages):
    packages({"package-0": 900})
    with energy.metered("cpu") as joules:
        packages({"package-0": 100})
        assert joules() == {"processors": pytest.approx(200e-6)}


def test_a_counter_that_cannot_be_read_is_unknown_and_not_zero(packages, tmp_path):
    with energy.metered("cpu") as joules:
        assert joules() == {"processors": None}
    packages({"package-0": 100})
    with energy.metered("cpu") as joules:
        (tmp_path / "intel-rapl:0/energy_uj").unlink()
        assert joules() == {"processors": None}


def test_a_counter_that_starts_again_twice_is_counted_from_its_readings():
    readings = [{"a": (count, 1000)} for count in (0, 600, 200, 800)]
    assert energy.total(readings) == pytest.approx(1800e-6)
    assert energy.total([*readings, None]) is None


def test_a_long_launch_is_read_often(packages, monkeypatch):
    readings, enough = [], threading.Event()

    def read_packages():
        readings.append({"a": (len(readings), 1000)})
        if len(readings) > 3:
            enough.set()
        return readings[-1]

    monkeypatch.setattr(energy, "read_packages", read_packages)
    monkeypatch.setattr(energy, "INTERVAL", 0.001)
    with energy.metered("cpu"):
        assert enough.wait(10)


def test_the_energy_of_the_gpu_is_that_of_nvml(nvml, packages):
    with energy.metered("cuda") as joules:
        assert joules() == {"processors": None, "gpu": 2.5}


def test_a_gpu_that_cannot_count_energy_is_unknown(nvml, packages):
    def fail(handle):
        raise nvml.NVMLError(3)

    nvml.nvmlDeviceGetTotalEnergyConsumption = fail
    with energy.metered("cuda") as joules:
        assert joules()["gpu"] is None


def test_a_launch_that_takes_turns_has_no_energy():
    with energy.metered(None) as joules:
        assert joules() == {}
