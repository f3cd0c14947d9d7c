"""Lasagne on Theano, with a replacement for a module that this Theano no longer has."""

import sys
import types

import numpy

from stele_worker.frameworks import theano as native  # first: it sets variables that Theano reads at import

import theano  # isort: skip
from theano.tensor.signal import pool  # isort: skip

put, take, wait, fetch, peak_memory = native.put, native.take, native.wait, native.fetch, native.peak_memory
flags = native.flags


def max_pool_2d(input, ds, st, ignore_border, padding, mode):
    """Pool with the signature that Lasagne 0.1 expects."""
    return pool.pool_2d(input, ws=ds, stride=st, ignore_border=ignore_border, pad=padding, mode=mode)


downsample = types.ModuleType("theano.tensor.signal.downsample")  # removed in Theano 0.9
downsample.max_pool_2d = max_pool_2d
sys.modules[downsample.__name__] = downsample

import lasagne  # noqa: E402


def configure(settings):
    """See ``stele_worker.frameworks``. ``stele_worker.protocol`` describes the settings."""
    native.configure(settings)
    lasagne.random.set_rng(numpy.random.RandomState(settings["seed"]))


def versions():
    return {"lasagne": lasagne.__version__, **native.versions()}


def make_function(inputs, outputs, updates=None):
    """Return a Theano function that is compiled at its first call, so that the first step includes compilation."""
    functions = []

    def call(*arrays):
        if not functions:
            functions.append(theano.function(inputs, outputs, updates=updates))
        return functions[0](*arrays)

    return call
