"""Octavo behind other frameworks' own interfaces: a module a framework, each an extra."""
