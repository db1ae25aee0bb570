"""What is claimed, held against scarcity, repetition, configurations and canaries."""
