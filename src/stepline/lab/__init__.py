"""Evidence with known truth; it never judges."""
