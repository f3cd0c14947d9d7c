"""Lasagne on Theano, with a replacement for a module that this Theano no longer has."""

import sys
import types

import numpy

from stele_worker.frameworks.theano import framework as of_theano  # first: it sets variables read by Theano's import

from theano.tensor.signal import pool  # isort: skip


def max_pool_2d(input, ds, st, ignore_border, padding, mode):
    """Pool with the signature that Lasagne 0.1 expects."""
    return pool.pool_2d(input, ws=ds, stride=st, ignore_border=ignore_border, pad=padding, mode=mode)


downsample = types.ModuleType("theano.tensor.signal.downsample")  # removed in Theano 0.9
downsample.max_pool_2d = max_pool_2d
sys.modules[downsample.__name__] = downsample

import lasagne  # noqa: E402


class Framework(of_theano.Framework):
    def configure(self, settings):
        super().configure(settings)
        lasagne.random.set_rng(numpy.random.RandomState(settings["seed"]))

    def versions(self):
        return {"lasagne": lasagne.__version__, **super().versions()}
