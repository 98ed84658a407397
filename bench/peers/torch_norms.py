"""Times PyTorch's fused norms and softmax on one GPU, for scripts/gpu/norms.ts.

Reads one JSON object a line from standard input, and answers with one line on standard output:
  {"op": "layerNorm", "rows": 2048, "columns": 12288} -> {"us": ..}
The time is the median of 20 rounds of 16 calls, which the GPU runs one after the other, each on other tensors than the
call before. All tensors are bfloat16.
"""

import json
import statistics
import sys

import torch
import torch.nn.functional as F

CALLS, ROUNDS = 16, 20
SLEEP_CYCLES = 2_000_000


def callable_of(op, rows, columns, sets):
    device = "cuda"
    xs = [torch.randn(rows, columns, device=device).to(torch.bfloat16) for _ in range(sets)]
    outs = [torch.empty_like(x) for x in xs]
    weight = torch.randn(columns, device=device).to(torch.bfloat16)
    bias = torch.randn(columns, device=device).to(torch.bfloat16)
    forms = {
        "copy": lambda i: outs[i].copy_(xs[i]),
        "layerNorm": lambda i: F.layer_norm(xs[i], (columns,), weight, bias),
        "rmsNorm": lambda i: F.rms_norm(xs[i], (columns,), weight, 1e-6),
        "softmax": lambda i: F.softmax(xs[i], 1),
    }
    return forms[op]


def measure(op, rows, columns, sets):
    call = callable_of(op, rows, columns, sets)
    times = []
    for i in range(3):
        call(i % sets)
    for _ in range(ROUNDS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The host issues all calls while the GPU sleeps.
        torch.cuda._sleep(SLEEP_CYCLES)
        start.record()
        for i in range(CALLS):
            call(i % sets)
        stop.record()
        torch.cuda.synchronize()
        times.append(1000 * start.elapsed_time(stop) / CALLS)
    return statistics.median(times)


with torch.no_grad():
    for line in sys.stdin:
        request = json.loads(line)
        us = measure(request["op"], request["rows"], request["columns"], request["sets"])
        print(json.dumps({"us": us, "torch": torch.__version__}), flush=True)
