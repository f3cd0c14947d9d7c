"""Lasagne around any Task: Theano, and what a release older than its Theano still asks of it."""

import sys
import types

import numpy

from stele_worker.frameworks import theano as native  # first: it sets what Theano reads at its import

import theano  # isort: skip
from theano.tensor.signal import pool  # isort: skip

put, take, wait, fetch, peak_memory = native.put, native.take, native.wait, native.fetch, native.peak_memory
flags = native.flags


def max_pool_2d(input, ds, st, ignore_border, padding, mode):
    """As Lasagne 0.1 calls it."""
    return pool.pool_2d(input, ws=ds, stride=st, ignore_border=ignore_border, pad=padding, mode=mode)


downsample = types.ModuleType("theano.tensor.signal.downsample")  # gone since Theano 0.9
downsample.max_pool_2d = max_pool_2d
sys.modules[downsample.__name__] = downsample

import lasagne  # noqa: E402


def configure(settings):
    """See ``stele_worker.frameworks``; settings as in ``stele_worker.protocol``."""
    native.configure(settings)
    lasagne.random.set_rng(numpy.random.RandomState(settings["seed"]))


def versions():
    return {"lasagne": lasagne.__version__, **native.versions()}


def function(inputs, outputs, updates=None):
    """A Theano function, compiled when it is first called: that belongs to the first step."""
    compiled = []

    def call(*arrays):
        if not compiled:
            compiled.append(theano.function(inputs, outputs, updates=updates))
        return compiled[0](*arrays)

    return call
