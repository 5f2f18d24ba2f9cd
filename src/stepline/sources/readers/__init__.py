"""One file format a file."""
