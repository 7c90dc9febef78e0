"""The machinery of figures: what one is, where it is found, how it is timed, recorded, drawn and judged."""
