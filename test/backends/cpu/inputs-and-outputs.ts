/** Inputs for tests of the CPU back end, and comparable outputs. */
import { createHash } from "node:crypto";
import type { Prepared, Program } from "@braid-compiler/braid";

export function fillInputs(program: Program, prepared: Prepared): void {
  for (const { id, role, bytes } of program.buffers) {
    if (role !== "input") continue;
    const values = new Float32Array(bytes / 4);
    for (let i = 0; i < values.length; i++) values[i] = ((i * 7 + id) % 17) - 8;
    prepared.write(id, new Uint8Array(values.buffer));
  }
}

/** A digest of all outputs: comparing megabytes element by element would take most of the test's time. */
export function digestOfOutputs(program: Program, prepared: Prepared): string {
  const hash = createHash("sha256");
  for (const { id, role } of program.buffers) if (role === "output") hash.update(prepared.read(id));
  return hash.digest("hex");
}
