"""The host side: starts workers, keeps what they measured, and judges it. Never imports a framework."""
