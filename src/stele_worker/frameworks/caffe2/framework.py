"""Caffe2 on the CPU: blobs in the only workspace of the process, and nets that run there."""

import ctypes
import itertools

from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace

from stele_worker.frameworks import base

CPU, ONEDNN = core.DeviceOption(caffe2_pb2.CPU), core.DeviceOption(caffe2_pb2.IDEEP)


class Framework(base.Framework):
    MODES = ("netdef", "as-shipped")

    def __init__(self, name):
        super().__init__(name)
        self.device = CPU  # for layers that have operators for both; Caffe2 calls oneDNN IDEEP
        self.threads = 1
        self.blob_numbers = itertools.count()  # put() numbers its blobs

    def configure(self, settings):
        """On a CPU an operator has one algorithm, and the number of threads determines its order of summation. So
        autotune and deterministic have no effect. The seed is an argument of each operator that draws numbers.
        """
        release = self.versions()["torch"]
        if settings["device"] != "cpu":
            reason = "Caffe2 of torch {} is supported on device 'cpu' only, not {!r}: use device 'cpu'"
            raise RuntimeError(reason.format(release, settings["device"]))
        if settings["precision"] != "fp32":
            reason = "Caffe2 of torch {} supports precision 'fp32' only on a CPU, not {!r}: use precision 'fp32'"
            raise RuntimeError(reason.format(release, settings["precision"]))
        self.device = ONEDNN if settings["mode"] != "as-shipped" else CPU
        self.threads = settings["threads"]
        # by default MKL counts cores, not processors
        pools = ("caffe2_omp_num_threads", "caffe2_mkl_num_threads")
        workspace.GlobalInit(["caffe2"] + ["--{}={}".format(pool, self.threads) for pool in pools])

    def versions(self):
        build = workspace.C.get_build_options()
        return {"torch": build["TORCH_VERSION"], "blas": build["BLAS_INFO"]}

    def flags(self):
        libraries = ctypes.CDLL(None)  # Caffe2 has no API for its threads, so ask its libraries
        return {
            "device": "cpu",
            "threads": libraries.omp_get_max_threads(),
            "mkl_threads": libraries.MKL_Get_Max_Threads(),
            "onednn": self.device is ONEDNN and workspace.C.use_mkldnn,
        }

    def put(self, array):
        blob = core.BlobReference("array{}".format(next(self.blob_numbers)))
        workspace.FeedBlob(blob, array, self.device)  # Caffe2 always puts integers on the CPU
        return blob

    def take(self, data, rows):
        workspace.FeedBlob("rows", rows, CPU)
        batch = data + "_batch"  # the next batch overwrites it
        workspace.RunOperatorOnce(core.CreateOperator("Gather", [data, "rows"], [batch], device_option=self.device))
        return batch

    def fetch(self, value):
        # steps return arrays, because the next step overwrites their blobs
        return workspace.FetchBlob(value) if isinstance(value, core.BlobReference) else value
