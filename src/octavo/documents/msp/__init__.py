"""Seed 000's own interface and documents: the MSP, its master states, sandboxes and session buffers."""
