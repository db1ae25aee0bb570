"""Loss of a session about public chunks that follow a Markov chain: bounds, and the attacker who reaches them."""
