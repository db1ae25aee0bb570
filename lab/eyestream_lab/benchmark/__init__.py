"""The benchmark: systems that hide who looked, and attackers on them, ours and those of others, judged alike."""
