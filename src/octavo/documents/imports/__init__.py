"""Memories of other products, read once and taken in: a module a product, through the same gate."""
