"""Rules that turn a picture of the server into findings; one cause a file."""
