"""stele.data: where data sets are dataset, their origin, and the synthetic replacement."""

from tests.support.data_files import CIFAR10, IMDB


def test_the_addresses_and_hashes_are_the_published_ones():
    """They are the same in keras.datasets."""
    from stele.data.source import PublishedSet

    assert PublishedSet("", "https://example.org/a/b.npz", "", 1, 1).file == "b.npz"
    assert CIFAR10.url == "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    assert CIFAR10.sha256 == "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
    assert IMDB.url.endswith("/tensorflow/tf-keras-datasets/imdb.npz")
    assert IMDB.sha256 == "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"
