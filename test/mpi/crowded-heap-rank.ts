/** Enters MPI with memory mapped right after the heap, or after so many pages, and then allocates. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";
import type * as Koffi from "koffi";
import { startMpi } from "../../src/backends/mpi/start-mpi-in-time.ts";

const koffi = createRequire(import.meta.url)("koffi") as typeof Koffi;
const system = koffi.load(null);
const mmap = system.func("int64_t mmap(uint64_t at, size_t bytes, int access, int flags, int file, long offset)");
const malloc = system.func("uint64_t malloc(size_t bytes)");
const memset = system.func("uint64_t memset(uint64_t to, int value, size_t bytes)");

/** MAP_PRIVATE, MAP_ANONYMOUS and MAP_FIXED_NOREPLACE of sys/mman.h. */
const flags = 0x2 | 0x20 | 0x100000;
const page = 4096;
const [, heapEnd = ""] = /-([0-9a-f]+) .*\[heap\]/.exec(readFileSync("/proc/self/maps", "utf8")) ?? [];
mmap(Number.parseInt(heapEnd, 16) + page * Number(process.argv[2]), page, 0, flags, -1, 0);

// oxlint-disable-next-line node/no-process-env -- the launcher's
const { messages } = startMpi(process.env);
for (let i = 0; i < 200; i++) memset(malloc(8000), 1, 8000);
console.log("alive");
messages.close();
