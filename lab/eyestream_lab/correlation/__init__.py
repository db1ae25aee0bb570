"""What a session tells about public chunks that follow a Markov chain: bounds, and the attacker who reaches them."""
