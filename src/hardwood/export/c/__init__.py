"""C99 headers: in the library's float32 arithmetic, or in integers for microcontrollers."""
