"""For tests of eyestream, ours and yours: rigs, noises without a guarantee, brokers, bad links, strangers, seams.

Nothing else in the package imports it. Some of its modules need what `pip install 'eyestream[test]'` brings.

`rig` is a pipeline and a ledger without links, `sidecar` a whole one between its brokers, `load` one without brokers.
What these three reach into is the inside of a sidecar: tests and tools use them and do not reach in themselves.
"""
