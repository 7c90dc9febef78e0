"""The state of an engine as bytes, tables and parts."""
