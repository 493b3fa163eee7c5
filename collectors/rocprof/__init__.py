"""AMD's profilers: their declaration, how they wrap a command, and the readers of what they leave."""
