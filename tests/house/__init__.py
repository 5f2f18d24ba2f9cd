"""The house as its documents describe it: rooms, their sizes, and what a change of each kind touches."""
