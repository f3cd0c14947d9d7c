"""The worker side: runs inside a framework's own interpreter. Python 3.6, numpy and one framework."""
