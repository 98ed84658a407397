/** How the ranks of a program access each other's memory. The choices of a schedule and the model's errors depend on it. */
import { touchesPeers } from "../../commands/barriers.ts";
import type { BufferId } from "../../commands/buffer.ts";
import type { Command, CommandStreamId } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { isGemmLaunch } from "../../schedule/draft/gemm-axes.ts";
import { commandPeer } from "../../trace/command-work.ts";

export interface PeerTraffic {
  /** Some kernel accesses a peer's memory. */
  readonly kernels: boolean;
  /** Some copy crosses a link. */
  readonly copies: boolean;
  /** Some GEMM reads data that a copy brought over a link. */
  readonly feedsGemms: boolean;
  /** On some stream a GEMM follows a kernel that accesses a peer's memory: a loop computes before and after it. */
  readonly hasStages: boolean;
}

export function peerTraffic(program: Program): PeerTraffic {
  const arrived = new Set<BufferId>();
  const found = { kernels: false, copies: false, feedsGemms: false, hasStages: false };
  for (const { rank, commands } of program.ranks) {
    const exchanged = new Set<CommandStreamId>();
    for (const command of commands) {
      if (command.kind === "copy" && commandPeer(program, rank, command) !== null) {
        found.copies = true;
        arrived.add(command.destination.buffer);
      }
      if (touchesPeers(program, rank, command)) {
        found.kernels = true;
        exchanged.add(command.stream);
      }
      found.hasStages ||= exchanged.has(command.stream) && isGemmLaunch(command, program);
    }
  }
  const isFed = (command: Command): boolean =>
    command.kind === "launch" &&
    isGemmLaunch(command, program) &&
    command.inputs.some(({ buffer }) => arrived.has(buffer));
  found.feedsGemms = arrived.size > 0 && program.ranks.some(({ commands }) => commands.some(isFed));
  return found;
}

/** Whether ranks exchange data at all. */
export function communicates(program: Program): boolean {
  if (program.transfers.length > 0) return true;
  const { kernels, copies } = peerTraffic(program);
  return kernels || copies;
}
