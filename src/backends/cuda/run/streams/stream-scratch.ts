/** Scratch and workspaces: memory that belongs to one stream, whose commands use it in turn. */
import type { DeviceBlock, DeviceMemory } from "../../memory/device-memory.ts";
import type { Resources } from "../../resources.ts";

/** Returns the address of at least `bytes` bytes that belong to `stream`; 0 for none. */
export type StreamScratch = (stream: number, bytes: number) => number;

/** A stream that asks for more gets a new block and keeps the first. `what` names the use in messages. */
export function createStreamScratch(memory: DeviceMemory, resources: Resources, what: string): StreamScratch {
  const blocks = new Map<number, DeviceBlock>();
  return (stream, bytes) => {
    if (bytes === 0) return 0;
    const known = blocks.get(stream);
    if (known !== undefined && known.bytes >= bytes) return known.address;
    const made = resources.own(memory.allocate(bytes, what));
    blocks.set(stream, made);
    return made.address;
  };
}
