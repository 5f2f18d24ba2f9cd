"""Tables wherever they stand: how they are laid out, what each column is, and the records they make."""
