"""Scores of all outputs of a network at once, from 0 to 1, for Tasks whose answers are not simply right or wrong."""

import numpy


def mean_auc(outputs, targets):
    """Return the mean area under the ROC curve, over the labels that have both classes.

    Both are arrays (samples, labels): any numbers, and 0 or 1. Raises ValueError if no label has both classes.
    """
    areas = [auc(*columns) for columns in zip(outputs.T, targets.T) if 0 < columns[1].mean() < 1]
    if not areas:
        raise ValueError("no label has both classes among {} samples, so there is no AUC".format(len(targets)))
    return float(numpy.mean(areas))


def auc(outputs, targets):
    """Return how often an output of class 1 is larger than one of class 0, of all pairs. A tie counts a half."""
    positive = targets > 0.5
    count = int(positive.sum())
    pairs = count * (len(targets) - count)
    return float(ranks(outputs)[positive].sum() - count * (count + 1) / 2) / pairs


def ranks(values):
    """Return the ranks of numbers, from 1. Equal numbers have the mean of their ranks."""
    _, groups, sizes = numpy.unique(values, return_inverse=True, return_counts=True)
    last = numpy.cumsum(sizes)  # of each group
    return (last - (sizes - 1) / 2)[groups]
