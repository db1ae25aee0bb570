"""For tests of eyestream, ours and yours: rigs, noises without a guarantee, brokers, bad links, strangers, seams."""
