"""Draws what `stepline roofline` computed: on a terminal, as one page, as a picture."""
