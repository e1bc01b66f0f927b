"""One spout or bolt task: reads segments from its stream manager, runs user code on them, writes segments back.

Pure files first (codec, splitters, buffers, pools, aligner), then the two threads: `gateway` owns the sockets, the
runners own the user's component; between them three queues (design D4).
"""
