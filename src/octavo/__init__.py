"""Octavo: long-term memory for AI agents."""
