"""Which environment variables decide what a framework computes."""

import pytest

from stele.measuring import variables


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KERAS_BACKEND", "torch"),
        ("XLA_FLAGS", "--xla_cpu_enable_fast_math=true"),
        ("JAX_ENABLE_X64", "1"),
        ("TF_ENABLE_ONEDNN_OPTS", "0"),
        ("TORCHDYNAMO_DISABLE", "1"),
        ("JAX_DISABLE_JIT", "1"),
        ("FLAGS_use_mkldnn", "1"),
        ("MALLOC_ARENA_MAX", "2"),
        ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
        ("LD_PRELOAD", "libjemalloc.so.2"),
    ],
)
def test_a_variable_that_frameworks_read_is_found(name, value):
    assert variables.deciding({name: value, "HOME": "/root"}) == {name: value}


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "KERAS_API_KEY", "TF_CLI_CONFIG_FILE", "PATH", "HF_HUB_OFFLINE", "STELE_CACHE"]
)
def test_secrets_and_variables_without_effect_are_left_out(name):
    assert variables.deciding({name: "value"}) == {}


def test_the_allocator_that_is_preloaded_is_named():
    assert variables.allocator({"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}) == "jemalloc"
    assert variables.allocator({}) == "that of the C library"
