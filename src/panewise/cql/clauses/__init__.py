"""Windows, frames and FILL WITH: parsed, bound and printed."""
