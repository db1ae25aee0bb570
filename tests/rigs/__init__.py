"""What tests, tools and benchmarks share: brokers, trackers, bad links, strangers, seams for planted faults.

Four rigs hold a whole world. A test takes the first that shows what it asks.

- `rig`: the pipeline on a ledger of its own, without links or a loop. The test moves clock and rows by hand, and sees
  every reservation, draw and publication in order. `rig.World` gives rows serial numbers and checks what must hold at
  any quiet moment; the fuzzer (`hostile`) drives it.
- `sidecar`: a whole sidecar on real links. `storms` adds traffic, an ear and bad weather. `tainting` runs it as a
  process with canaries in its rows.
- `simulated`: everything from trackers to disks in virtual time, drawn from one seed: one sidecar (`inside`, `whole`)
  or the workers of a fleet (`fleet`). `tools.verification.world` plays its histories, and `simulated.planted` has the
  wrong versions that they must find. A new fault of the surroundings belongs here.
- `shards`: one shard that ends at a chosen effect, with its real files. `fleets` has workers as real processes.

Two ledgers stand in for the durable one: `memory_ledger` decides as it does, and that of
`tests/product/release/worlds.py` refuses by chance. `budget_lives` is a naive book that accounts are compared with.
`scripted` is a broker whose faults are chosen. `two_worlds` is statistics: whether two series can be told apart.

What `rig`, `sidecar` and `shards` reach into is the inside of a service: tests and tools use them and do not reach in
themselves. Some modules need what `pip install 'eyestream[test]'` brings. What users need to test a mechanism or a
source of their own is in `eyestream_lab.testing`. `linking`, `likeness`, `trained_books`, `two_worlds` and
`chain_attack` make committed figures and files; nothing that somebody installs needs them.
"""
