"""The interfaces of the five documents as they wrote them, on top of an account; one room each."""
