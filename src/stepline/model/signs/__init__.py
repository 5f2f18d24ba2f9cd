"""What a picture says of one cause: one question a file, each a pure function of the picture."""
