"""C99: a header in the library's own float32 arithmetic, or in integers for microcontrollers."""
