"""One engine a file or folder: the only place its metric, log and flag names appear.

A log dialect is a class with `recognises(head)` and, per instance, `feed(line, text)` and `finish()`.
"""
