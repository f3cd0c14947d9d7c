"""The kernels that oneDNN selected."""

import ctypes
import tempfile

import pytest

from stele_worker import kernels


@pytest.mark.parametrize(
    "line, operation, implementation",
    [
        (
            "onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv:avx2,forward_training,src_f32,,,mb2,0.1",
            "oneDNN convolution forward_training",
            "brgconv:avx2 (1)",
        ),
        (
            "onednn_verbose,primitive,exec,cpu,matmul,jit:gemm,undef,x,0.1",
            "oneDNN matmul undef",
            "jit:gemm (1)",
        ),
        (
            "mkldnn_verbose,exec,reorder,jit:uni,undef,in:f32,num:1,0.1",
            "oneDNN reorder undef",
            "jit:uni (1)",
        ),
    ],
)
def test_the_report_of_onednn_is_read_in_every_version(line, operation, implementation):
    assert kernels.summarise([line, "onednn_verbose,info,cpu,isa:AVX2", "other"]) == {operation: implementation}


def test_what_native_code_prints_is_read_from_its_file(capfd):
    with tempfile.TemporaryFile() as file:
        with kernels.output_to(file):
            ctypes.CDLL(None).puts(b"native")
        file.seek(0)
        assert file.read() == b"native\n"
    assert capfd.readouterr().out == ""
