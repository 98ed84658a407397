"""A process group that says that the peer is ready, and then waits for ever, as for a rank that has ended."""

import os
import time


def init_process_group(*_, **__):
    os.write(1, b'{"ready": 0}\n')
    while True:
        time.sleep(3600)
