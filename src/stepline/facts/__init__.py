"""Hardware and model facts as data files, each number with its source."""
