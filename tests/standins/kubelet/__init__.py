"""A stand-in for a node's kubelet: the pods that the real scheduler binds to the node run with docker."""
