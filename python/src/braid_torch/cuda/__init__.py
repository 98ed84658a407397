"""The CUDA driver and the libraries beside it, by ctypes. Nothing here knows plans."""
