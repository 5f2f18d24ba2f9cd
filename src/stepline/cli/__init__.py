"""One verb a file; the only place that joins the layers."""
