"""The web page: an account as its owner reads it, asks it, decides and undoes; no script is needed."""
