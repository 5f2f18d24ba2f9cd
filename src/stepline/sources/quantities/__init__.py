"""What a number is: one grammar for the names and cells of every table, document, block and metric."""
