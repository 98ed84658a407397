/** Which kernels work in other ranks' memory, as the combination of a collective of the CUDA backend does. */
import type { Command } from "./command.ts";
import type { Program } from "./program.ts";

/** Whether a command is a launch on `rank` that reads or writes a buffer of another rank. */
export function touchesPeers({ buffers }: Pick<Program, "buffers">, rank: number, command: Command): boolean {
  if (command.kind !== "launch") return false;
  return [command.inputs, command.outputs].some((refs) => refs.some(({ buffer }) => buffers[buffer]?.rank !== rank));
}
