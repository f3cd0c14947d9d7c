import pytest

from stele.errors import SteleError
from stele.measuring.settings import Settings


def test_the_number_of_threads_is_set_in_environment_variables():
    variables = Settings(device="cpu", threads=3).variables()
    assert variables["OMP_NUM_THREADS"] == variables["OPENBLAS_NUM_THREADS"] == "3"


def test_deterministic_turns_autotuning_off():
    assert Settings(device="cuda", deterministic=True).as_request(tuned=True)["autotune"] is False
    assert Settings(device="cuda").as_request(tuned=True)["autotune"] is True


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"precision": "tf32"}, "Precision tf32 needs a GPU"),
        ({"threads": 0}, "--threads 0: at least one"),
        ({"seed": -1}, "--seed -1"),
    ],
)
def test_an_invalid_setting_is_an_error(values, message):
    with pytest.raises(SteleError, match=message):
        Settings(device="cpu", **values)


def test_settings_have_a_summary():
    assert Settings(device="cpu", threads=1, seed=7).summary() == "cpu, 1 thread, fp32, seed 7"


def test_the_steady_allocator_keeps_memory_and_requests_huge_pages():
    steady, plain = (Settings(device="cpu", malloc=name).variables() for name in ("steady", "plain"))
    added = {name: steady[name] for name in steady.keys() - plain.keys()}
    assert added["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"
    assert int(added["MALLOC_TRIM_THRESHOLD_"]) >= 2**32 and int(added["MALLOC_MMAP_THRESHOLD_"]) >= 2**32


def test_an_allocator_that_returns_freed_memory_maps_large_arrays_alone():
    returning, plain = (Settings(device="cpu", malloc=name).variables() for name in ("mmap", "plain"))
    assert returning == {**plain, "MALLOC_MMAP_THRESHOLD_": "131072"}


def test_no_library_is_told_its_precision_if_it_is_the_frameworks():
    settings = Settings(device="cuda", precision="default")
    assert "NVIDIA_TF32_OVERRIDE" not in settings.variables()
    assert settings.arithmetic == "tf32"
    assert Settings(device="cpu", precision="default").arithmetic == "fp32"
