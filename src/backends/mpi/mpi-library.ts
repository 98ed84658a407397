/** Finds MPI libraries and binds one through koffi. A process uses one of them. */
import type * as Koffi from "koffi";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { invariant } from "../../support/invariant.ts";
import { type FunctionsOf, libraryFolders, type Prototypes } from "../cuda/bindings/native-library.ts";
import type { MpiAbi, MpiConstant } from "./abi.ts";

export interface MpiLibrary {
  /** The name under which the loader found it. */
  readonly file: string;
  readonly abi: MpiAbi;
  readonly functions: MpiFunctions;
  readonly world: number;
  readonly byte: number;
  /** The library's name and version, as it states them. */
  readonly version: string;
  /** alarm of unistd.h: the system ends the process after so many seconds, also in a call that does not return. */
  readonly alarm: (seconds: number) => number;
}

/** Folders where distributions that allow several MPI libraries side by side put them. */
const ownFolders = [
  "/usr/lib64/openmpi/lib",
  "/usr/lib64/mpich/lib",
  "/opt/mpi/lib",
  "/opt/intel/oneapi/mpi/latest/lib",
];

/** Existing folders that are searched after the loader's path. */
export function mpiFolders(): readonly string[] {
  return [...libraryFolders(), ...ownFolders.filter((folder) => existsSync(folder))];
}

/** The first library of that ABI that loads; null if there is none. Throws if it lacks a function. */
export function findMpiLibrary(abi: MpiAbi): MpiLibrary | null {
  const { files } = abi;
  const existing = mpiFolders().flatMap((folder) => files.map((file) => path.join(folder, file)).filter(existsSync));
  // oxlint-disable-next-line typescript/no-unsafe-assignment -- require gives any; an optional package cannot be imported statically
  const koffi: typeof Koffi = createRequire(import.meta.url)("koffi");
  spareHeap(koffi);
  for (const file of [...files, ...existing]) {
    let handle: ReturnType<typeof Koffi.load>;
    try {
      handle = koffi.load(file);
    } catch {
      continue;
    }
    return bind(koffi, handle, file, abi);
  }
  return null;
}

/** RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE of dlfcn.h: an MPI library's plug-ins take its symbols from the process. */
const globalForEver = 0x1102;

function bind(koffi: typeof Koffi, handle: ReturnType<typeof Koffi.load>, file: string, abi: MpiAbi): MpiLibrary {
  const process = koffi.load(null);
  const dlopen: (name: string, flags: number) => number = process.func("uint64_t dlopen(const char *name, int flags)");
  const dlsym: (library: number, name: string) => number = process.func(
    "uint64_t dlsym(uint64_t library, const char *name)",
  );
  const library = dlopen(file, globalForEver);
  const constant = (given: MpiConstant): number => {
    if (given.kind === "value") return given.value;
    const address = dlsym(library, given.name);
    if (address === 0) throw new Error(`${file} does not export ${given.name}`);
    return address;
  };
  const table = Object.entries(mpiPrototypes).map(([name, prototype]) => {
    const bound: unknown = handle.func(prototype.replaceAll(/\bhandle\b/g, abi.handle));
    return [name, bound] as const;
  });
  // oxlint-disable-next-line typescript/consistent-type-assertions -- a table of the FFI: one function per prototype
  const functions = Object.fromEntries(table) as MpiFunctions;
  return {
    file,
    abi,
    functions,
    world: constant(abi.world),
    byte: constant(abi.byte),
    version: versionOf(functions),
    alarm: process.func("unsigned int alarm(unsigned int seconds)"),
  };
}

/** "Open MPI v4.1.4" or "MPICH Version: 4.0.2": the first line up to a comma. */
function versionOf({ MPI_Get_library_version }: MpiFunctions): string {
  const bytes = new Uint8Array(mostVersionBytes);
  const length: [number] = [0];
  const status = MPI_Get_library_version(bytes, length);
  invariant(status === 0, "MPI_Get_library_version succeeds", { status });
  const [first = ""] = new TextDecoder().decode(bytes.subarray(0, length[0])).split(/[\n,]/);
  return first.replaceAll(/\s+/g, " ").trim();
}

// Memory at the heap's end that nobody uses. UCX, under MPICH, tests in MPI_Init whether it sees changes of the heap: it
// moves the heap's end up by a page and down again, and does not notice if up failed. V8 may have memory right after the
// heap (one start in fifty); the heap then loses its last page, and the process crashes or hangs at a later allocation.

const bytes = 64 * 2 ** 10;

/** Call it before an MPI library is loaded. Where there is no room, it turns UCX's test off, by a variable read then. */
function spareHeap(koffi: typeof Koffi): void {
  if (process.platform !== "linux") return;
  const sbrk: (increment: number) => number = koffi.load(null).func("intptr_t sbrk(intptr_t increment)");
  // oxlint-disable-next-line node/no-process-env -- UCX has no other way to be told
  if (sbrk(bytes) === -1) process.env["UCX_MEM_EVENTS"] ??= "no";
}

// The functions of MPI that Braid calls, with their names in mpi.h. `handle` is the type that the ABI says.

const mpiPrototypes = {
  MPI_Get_library_version: "int MPI_Get_library_version(void *text, _Out_ int *length)",
  MPI_Init_thread: "int MPI_Init_thread(uint64_t argc, uint64_t argv, int required, _Out_ int *provided)",
  MPI_Comm_rank: "int MPI_Comm_rank(handle communicator, _Out_ int *rank)",
  MPI_Comm_size: "int MPI_Comm_size(handle communicator, _Out_ int *size)",
  MPI_Isend: "int MPI_Isend(void *from, int count, handle type, int peer, int tag, handle communicator, void *request)",
  MPI_Irecv: "int MPI_Irecv(void *to, int count, handle type, int peer, int tag, handle communicator, void *request)",
  MPI_Testsome: "int MPI_Testsome(int count, void *requests, _Out_ int *completed, void *indices, uint64_t statuses)",
  MPI_Barrier: "int MPI_Barrier(handle communicator)",
  MPI_Finalize: "int MPI_Finalize()",
} as const satisfies Prototypes;

type MpiFunctions = FunctionsOf<typeof mpiPrototypes>;

/** Of MPI_MAX_LIBRARY_VERSION_STRING the largest, which is MPICH's. */
const mostVersionBytes = 8192;

/** MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE, which are 0 to 3 in every ABI. */
export const threadLevels = ["single", "funneled", "serialized", "multiple"] as const;

export type ThreadLevel = (typeof threadLevels)[number];
