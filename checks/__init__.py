"""Programs that measure and attack Stele itself."""
