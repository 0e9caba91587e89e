"""Acts: what an account, a sandbox and their background work do."""
