"""The host side of Stele: starts workers, stores their measurements, and judges them. Never imports a framework."""
