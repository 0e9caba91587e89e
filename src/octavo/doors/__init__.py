"""The doors: CLI and the rest; each is thin and goes through the engine."""
