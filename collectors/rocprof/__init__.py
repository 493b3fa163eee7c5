"""AMD's profilers: how they wrap a command, and the readers of what they leave."""
