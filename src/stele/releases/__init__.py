"""A framework's own history: its releases from the package index, and a ledger of them that asv can walk."""
