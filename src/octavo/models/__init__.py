"""Embedders and summarisers, offline and remote; nothing loads before its first use."""
