/** The bubble of a pipeline: devices of some stages have nothing to do while others work. */
import type { Program } from "../commands/program.ts";
import type { Signature } from "../compile/lower-all.ts";
import { overlapOf } from "../trace/overlap.ts";
import type { TracedRun } from "./explain-run.ts";

/**
 * The share of all devices' time in which they run no kernel; null for a program without stages: inputs on meshes that
 * have no device in common.
 */
export function bubbleOf(
  program: Program,
  { trace, milliseconds }: Pick<TracedRun, "trace" | "milliseconds">,
  { tensors, inputs }: Signature,
): number | null {
  const meshes = new Set(inputs.flatMap((id) => tensors[id]?.mesh ?? []));
  const isStaged = [...meshes].some((a) => [...meshes].some((b) => !a.devices.some((device) => b.has(device))));
  if (!isStaged || milliseconds === 0) return null;
  const busy = overlapOf(program, trace).reduce((sum, { kernels }) => sum + kernels, 0);
  return 1 - busy / (program.ranks.length * milliseconds);
}
