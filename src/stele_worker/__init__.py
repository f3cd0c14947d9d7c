"""The worker side: runs in a framework's own interpreter. Needs Python 3.6, numpy and one framework."""
