"""Suites, strategies, faults and clocks: for us and for implementers."""
