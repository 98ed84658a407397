/**
 * Lays out the WebAssembly.Memory of a group: the arenas of all ranks, then the kernels' scratch, then space for the
 * inputs that eager transfers keep. A Program that does not fit is rejected, with its sizes, before anything is
 * allocated.
 */
import type { Arena } from "../../commands/buffer.ts";
import { type Program, reservedBytes } from "../../commands/program.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { at } from "../../support/invariant.ts";
import { counted } from "../../support/wording.ts";
import { createWasmMemory, type WasmMemory } from "../../support/webassembly.ts";

interface Range {
  readonly address: number;
  readonly bytes: number;
}

export interface AddressSpace {
  /** Byte address by BufferId. */
  readonly buffers: Float64Array;
  /** The first worker's scratch. The others' follow, each of the same size. */
  readonly scratch: Range;
  /** Space for inputs that eager transfers keep. */
  readonly saved: Range;
  readonly bytes: number;
}

const arenas: readonly Arena[] = ["input", "output", "temporary", "symmetric"];
const alignment = 256;

/** The size of a WebAssembly.Memory with 32-bit addresses. */
const addressableBytes = 2 ** 32;

/** The lowest address in use. Address 0 stays free, so that a missing address is noticed. */
const firstAddress = alignment;

export function layOutProgram(program: Program, scratchBytes: number, savedBytes: number, workers = 1): AddressSpace {
  let next = firstAddress;
  const place = (bytes: number): number => {
    const address = next;
    next = Math.ceil((next + bytes) / alignment) * alignment;
    return address;
  };
  const bases = program.ranks.map(
    ({ arenaBytes }) => new Map(arenas.map((arena) => [arena, place(arenaBytes[arena])])),
  );
  const perWorker = Math.ceil(scratchBytes / alignment) * alignment;
  const scratch = { address: place(workers * perWorker), bytes: perWorker };
  const saved = { address: place(savedBytes), bytes: savedBytes };
  if (next > addressableBytes) refuse(program, workers * perWorker + savedBytes, next);
  const buffers = Float64Array.from(
    program.buffers,
    ({ rank, arena, offset }) => (at(bases, rank).get(arena) ?? 0) + offset,
  );
  return { buffers, scratch, saved, bytes: next };
}

/** The memory of a Program. Throws `memory-limit` if the system cannot provide it. */
export function createGroupMemory(
  program: Program,
  { bytes }: AddressSpace,
  { shared }: { shared: boolean },
): WasmMemory {
  try {
    return createWasmMemory(bytes, { shared });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return fail("memory-limit", "the system cannot provide the memory that the program needs", {
      place: { kind: "call", text: "prepare(program)" },
      found: `${gib(bytes)} for ${counted(program.ranks.length, "rank")} refused: ${error.message}`,
      expected: "enough free memory and address space",
      help: "use smaller sizes or fewer devices, close executors that are done, or raise the limits of this process",
    });
  }
}

function gib(count: number): string {
  return `${(count / 2 ** 30).toFixed(2)} GiB`;
}

function refuse(program: Program, otherBytes: number, bytes: number): never {
  const largest = program.ranks
    .map((own) => ({ rank: own.rank, bytes: reservedBytes(own) }))
    .toSorted((a, b) => b.bytes - a.bytes)[0];
  return fail("memory-limit", "the program needs more memory than the CPU back end can address", {
    place: { kind: "call", text: "prepare(program)" },
    found: `${gib(bytes)} for ${counted(program.ranks.length, "rank")}`,
    expected: `at most ${gib(addressableBytes)}`,
    help: "use smaller sizes or fewer devices",
    notes: [
      `rank ${largest?.rank ?? 0} alone needs ${gib(largest?.bytes ?? 0)}; scratch and kept inputs ${gib(otherBytes)}`,
    ],
  });
}
