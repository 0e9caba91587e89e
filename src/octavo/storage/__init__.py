"""Bytes: the ledger, its stores, and everything derived from it."""
