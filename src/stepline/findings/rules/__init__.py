"""One cause a file; the docstring is its documentation.

So many files because there are so many causes: a cause is found by its name, and no rule knows another.
"""
