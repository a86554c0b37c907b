"""What is the same in every workload and on both sides. Standard library only."""

LEARNING_RATE = 1e-6  # the peer's default
CLIP_LOW, CLIP_HIGH = 3e-4, 4e-4  # arXiv 2507.18071, section 5.1
NUM_THREADS = 2
