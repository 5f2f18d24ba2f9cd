"""One verb a file; the only place that joins the layers.

So many files because there are so many verbs, and the larger ones have their arguments or their drawing beside them
under the verb's name (`lab_serve`, `live_arguments`, `roofline_table`).
"""
