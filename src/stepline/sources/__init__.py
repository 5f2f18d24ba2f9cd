"""Everything that touches the world; it only produces evidence."""
