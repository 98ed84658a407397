/** How commands hold the streams of other ranks, and are held by them: what rewrites and back ends keep in order. */
import type { Command } from "./command.ts";

/** Commands that hold a stream until another rank has done something. */
export function isBlocking({ kind }: Pick<Command, "kind">): boolean {
  return kind === "waitSignal" || kind === "transfer";
}

/** Commands that another rank's blocking ones wait for. */
export function isSignalling({ kind }: Pick<Command, "kind">): boolean {
  return kind === "signal" || kind === "transfer";
}
