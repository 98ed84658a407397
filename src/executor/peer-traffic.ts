/** By what the ranks of a program reach each other's memory: which choices a schedule has, and how well it is simulated, depends on it. */
import type { Command } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import { touchesPeers } from "../commands/touches-peers.ts";
import { peerOf } from "../trace/command-work.ts";

export interface PeerTraffic {
  /** Some kernel works in a peer's memory. */
  readonly kernels: boolean;
  /** Some copy crosses a link. */
  readonly copies: boolean;
}

export function peerTraffic(program: Program): PeerTraffic {
  const some = (is: (rank: number, command: Command) => boolean): boolean =>
    program.ranks.some(({ rank, commands }) => commands.some((command) => is(rank, command)));
  return {
    kernels: some((rank, command) => touchesPeers(program, rank, command)),
    copies: some((rank, command) => peerOf(program, rank, command) !== null),
  };
}
