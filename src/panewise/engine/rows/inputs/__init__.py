"""Windows over streams as relations whose rows have lifetimes."""
