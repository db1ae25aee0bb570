"""What tests, tools and benchmarks share: brokers, trackers, bad links, strangers, seams for planted faults.

`rig` is a pipeline and a ledger without links, `sidecar` a whole one between its brokers, `load` one without brokers.
What these three reach into is the inside of a sidecar: tests and tools use them and do not reach in themselves. Some
modules need what `pip install 'eyestream[test]'` brings. What users need to test a mechanism or a source of their own
is in `eyestream_lab.testing`. `linking`, `likeness`, `trained_books`, `two_worlds` and `chain_attack` make committed
figures and files; nothing that somebody installs needs them.
"""
