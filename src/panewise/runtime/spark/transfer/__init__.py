"""What is transferred from Spark's JVM to Python, and how."""
