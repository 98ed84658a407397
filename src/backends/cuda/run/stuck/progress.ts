/**
 * The progress of a run's streams, for the message of a run that hangs. Before a stream waits for a peer, it writes the
 * number of the command into pinned memory, in the same batch of memory operations. After the wait it writes that it
 * has passed. A run of waits is reported once before the first and once after the last; the words of their slots show
 * which signals have arrived. In an eager run, completed events say more.
 */
import type { Reported } from "../../../../trace/flight/flight-record.ts";
import type { GpuWords } from "../../../flight/flight-files.ts";
import type { HostBlocks } from "../../memory/host-blocks.ts";
import { reportedBy } from "../../ops/memory-operations.ts";

export interface StreamProgress {
  /** The address of a stream's word. */
  readonly address: (stream: number) => number;
  readonly words: GpuWords;
  /** Call it between runs. */
  readonly reset: () => void;
  /** Null if the stream reported nothing in this run. */
  readonly last: (stream: number) => Reported;
}

export function createProgress(streams: number, blocks: Pick<HostBlocks, "take">): StreamProgress {
  const { address, view } = blocks.take(Math.max(4, 4 * streams));
  return {
    address: (stream) => address + 4 * stream,
    words: { address, streams },
    reset: () => {
      for (let i = 0; i < streams; i++) view.setUint32(4 * i, 0, true);
    },
    last: (stream) => readProgress(view, stream),
  };
}

export function readProgress(view: DataView, stream: number): Reported {
  const word = view.getUint32(4 * stream, true);
  return word === 0 ? null : reportedBy(word);
}
