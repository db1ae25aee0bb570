"""Who is it? Attackers who know the whole program, on people who did not calibrate it, with figures over people."""
