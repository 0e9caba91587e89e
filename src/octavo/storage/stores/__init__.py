"""The stores a ledger can lie in; one protocol, one conformance suite."""
