"""What figures read: generated streams, traces of files, and the windows that are asked for over them."""
