"""torch.profiler: its declaration, how it is driven inside a program, and the reader of its Chrome traces."""
