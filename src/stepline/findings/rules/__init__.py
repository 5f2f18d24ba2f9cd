"""One cause a file; the docstring is its documentation."""
