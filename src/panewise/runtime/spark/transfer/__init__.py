"""What crosses from Spark's JVM into Python, and how."""
