"""Benchmarks of the spine: run one with `python -m bench.<name>`."""
