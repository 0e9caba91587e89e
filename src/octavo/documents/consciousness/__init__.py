"""Seed 001 as the document writes it: the consciousness tree, its sessions and its files."""
