"""Rules that turn a picture of the server into findings; one cause a file.

So many files because each holds one question that reports, comparisons and experiments ask of findings.
"""
