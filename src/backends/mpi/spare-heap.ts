/**
 * Memory at the heap's end that nobody uses. UCX, under MPICH, tests in MPI_Init whether it sees changes of the heap: it
 * moves the heap's end up by a page and down again, and does not notice if up failed. V8 may have memory right after the
 * heap (one start in fifty); the heap then loses its last page, and the process crashes or hangs at a later allocation.
 */
import process from "node:process";
import type * as Koffi from "koffi";

const bytes = 64 * 2 ** 10;

/** Call it before an MPI library is loaded. Where there is no room, it turns UCX's test off, by a variable read then. */
export function spareHeap(koffi: typeof Koffi): void {
  if (process.platform !== "linux") return;
  const sbrk: (increment: number) => number = koffi.load(null).func("intptr_t sbrk(intptr_t increment)");
  // oxlint-disable-next-line node/no-process-env -- UCX has no other way to be told
  if (sbrk(bytes) === -1) process.env["UCX_MEM_EVENTS"] ??= "no";
}
