"""Files that Python workers read themselves, as Arrow columns: their rows never enter the JVM."""
