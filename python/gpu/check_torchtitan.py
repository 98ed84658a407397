"""
torchtitan's own tests of its fused linear layers, with PyTorch's two ops replaced by Braid's. From the repository:

    PYTHONPATH=python/src:TORCHTITAN:DEPENDENCIES python python/gpu/check_torchtitan.py

TORCHTITAN is a checkout of it, of which the module and the test suffice beside empty __init__.py files. DEPENDENCIES has
its spmd_types, and expecttest, which PyTorch's test classes need. With BRAID_ALWAYS=1, plans also run where PyTorch's
ways are faster, as for the small shapes of these tests. With BRAID_ONE_GPU=1, the two ranks of each test share a GPU, as
two hosts for NCCL.
"""

from __future__ import annotations

import os
import sys
import unittest
from unittest.mock import patch

# The tests' processes import this file again.
import torch
from tests.unit_tests import test_distributed_linear

import braid_torch
from braid_torch import torch_ops

braid_torch.install()
if os.environ.get("BRAID_ALWAYS") == "1":
    torch_ops.fastest = lambda candidates, group: next(iter(candidates))


class WithBraid(test_distributed_linear.TestDistLinearPrimitives):
    # PyTorch's class takes the CPU where a machine has fewer GPUs than ranks.
    device_type = "cuda"

    def init_pg(self, *args: object, **options: object) -> None:
        if os.environ.get("BRAID_ONE_GPU") != "1":
            super().init_pg(*args, **options)
            return
        os.environ.update(NCCL_HOSTID=f"rank-{self.rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
        with (
            patch.object(torch.accelerator, "device_count", lambda: self.world_size),
            patch.object(torch.accelerator, "set_device_index", lambda index: torch.cuda.set_device(0)),
        ):
            super().init_pg(*args, **options)

    def destroy_pg(self, device_id: int | None = None) -> None:
        if self.rank == 0:
            for choice in braid_torch.choices():
                print("runs", choice["runs"], "for", choice["call"].split()[0], file=sys.stderr)
        super().destroy_pg(device_id)


if __name__ == "__main__":
    unittest.main(verbosity=2)
