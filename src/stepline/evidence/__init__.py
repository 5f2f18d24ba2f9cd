"""What was seen: frozen records with units in their names, and the bundle that keeps them."""
