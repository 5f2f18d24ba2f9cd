"""What the logs of all engines have in common, and the fast way through long ones.

`lines` takes wrappings off, `logbook` is what a reader writes into, `remarks` gathers warnings, `rotation` orders
files.
From some size on `by_shape` reads many lines at a time: `template` says where a line has its numbers, `shapes` sorts
the lines of a chunk by their template, `numbers` reads them as columns, `thin` and `sums` bound how much is kept.
"""
