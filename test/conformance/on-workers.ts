/**
 * Worker streams of hand-built programs. nvFuser's tests begin on the workers without waiting for the caller and end
 * without making the caller wait, since they synchronize with the host: such a program is `as written`, and its
 * `joined` twin has both edges.
 */
import type { HostProgramBuilder } from "@braid-compiler/braid";
import type { HostStream } from "../../src/host/nodes.ts";

export type Ending = "joined" | "as written";

export const workers = 3;

export type Index = Parameters<HostProgramBuilder["scalars"]["add"]>[0];

/** Runs `body`, which switches to `worker(i)`. Later statements run on `last`. */
export function onWorkers(
  h: HostProgramBuilder,
  ending: Ending,
  body: (worker: (i: Index) => HostStream) => void,
): void {
  const all = Array.from({ length: workers }, (_, i) => h.stream(i));
  const caller = ending === "joined" ? h.getCurrentStream() : null;
  if (caller !== null) {
    for (const worker of all) {
      h.setCurrentStream(worker);
      h.synchronize(caller);
    }
  }
  body((i) => h.stream(h.scalars.mod(i, workers)));
  // As written, the worker that is current then waits for all.
  if (caller !== null) h.setCurrentStream(caller);
  for (const worker of all) h.synchronize(worker);
}
