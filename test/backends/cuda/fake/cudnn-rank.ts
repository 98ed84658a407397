/**
 * Attention by cuDNN on one fake GPU, eager and as a graph. Prints a line per case. With an argument, prints the message
 * of an attention that is not run instead.
 */
import process from "node:process";
import { createCudaBackend, soloRendezvous } from "../../../../src/cuda.ts";
import { MultiDeviceExecutor } from "../../../../src/executor/multi-device-executor.ts";
import { Fusion } from "../../../../src/ir/api/fusion.ts";
import { sdpa } from "../../../../src/ir/api/ops.ts";
import { checkCase } from "../../../gpu/check-case.ts";
import { expectationsOf } from "../../../gpu/expectation.ts";
import { attentionFusion, smallAttentionCases } from "../../../gpu/attention-cases.ts";

function twoOfOneLayout(): Fusion {
  const f = new Fusion();
  const [q, k, v] = [f.input([2, 4, 8], "half"), f.input([2, 4, 8], "half"), f.input([2, 4, 8], "half")];
  f.output(sdpa(sdpa(q, k, v).output, k, v).output);
  return f;
}

const on = createCudaBackend({ rendezvous: soloRendezvous(), graph: "on" });

if (process.argv[2] === undefined) {
  for (const { name, build } of [...smallAttentionCases, { name: "two of one layout", build: twoOfOneLayout }]) {
    const options = { rank: 0, devices: 1, on, repeat: 3, sameBits: true, attention: "fused" } as const;
    const problems = await checkCase(build(), expectationsOf(build()), options);
    console.log(`${name}: ${problems.join("; ") || "ok"}`);
  }
} else {
  const form = { name: "", q: [4, 8], k: [4, Number(process.argv[2])] };
  const fusion = attentionFusion({ ...form, q: [4, Number(process.argv[2])] }, "half");
  for (const attention of ["fused", "auto"] as const) {
    try {
      const executor = await MultiDeviceExecutor.create(fusion, { devices: 1, on, attention });
      for (const note of executor.notes) console.log(`${note.severity}: ${note.message}: ${note.found}`);
      await executor.prepare();
      await executor.close();
    } catch (error) {
      console.log(error instanceof Error ? error.message : error);
    }
  }
}
process.exit();
