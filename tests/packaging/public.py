"""The modules that users may import; everything else in the package may change at any time."""

MODULES = (
    "panewise",
    "panewise.filters",
    "panewise.plot",
    "panewise.reference",
    "panewise.serve",
    "panewise.spark",
    "panewise.window",
)
