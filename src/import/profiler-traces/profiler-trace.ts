/**
 * A trace of PyTorch's profiler (Kineto): what one rank's GPU did, and in which step the host launched it. Communication
 * is what NCCL's kernels, PyTorch's kernels in symmetric memory and copies between GPUs do. NCCL's carry their
 * collective, process group and sizes since PyTorch 2.3; in a CUDA graph, and before that, only the kernel's name says
 * what it is.
 */
import { type Document, field, isAbsent, type Json, listIn, numberIn, textIn, wrongValue } from "../json.ts";

export interface ProfilerTrace {
  readonly path: string;
  readonly rank: number;
  /** The names of the profiled steps, in order; empty if the program did not call `step()`. */
  readonly steps: readonly string[];
  /** In order of start. */
  readonly slices: readonly DeviceSlice[];
}

export interface DeviceSlice {
  readonly kind: "kernel" | "copy" | "communication";
  /** Milliseconds on the rank's own clock. */
  readonly start: number;
  readonly end: number;
  /** The step in which the host launched it; null outside of all. */
  readonly step: string | null;
  /** Null unless it communicates. */
  readonly collective: TracedCollective | null;
}

export interface TracedCollective {
  /** `_all_gather_base`, or what the kernel is called. */
  readonly op: string;
  /** Null if the trace does not say. */
  readonly group: { readonly name: string; readonly description: string; readonly ranks: readonly number[] } | null;
  readonly dtype: string | null;
  /** Of the whole message: the larger one of what goes in and what comes out. */
  readonly bytes: number | null;
  /** A send or recv, which not all ranks of the group take part in. */
  readonly isPointToPoint: boolean;
}

const help = 'pass what prof.export_chrome_trace("trace.json") wrote, of each rank: docs/traces.md says how';

/** `position`: the rank if neither the trace nor the end of its name says it. Throws `trace-invalid`. */
export function readProfilerTrace(value: unknown, path: string, position: number): ProfilerTrace {
  const document: Document = {
    path,
    entry: null,
    invalid: { code: "trace-invalid", message: "a trace has another form than PyTorch's", help },
  };
  const root: Json = { value, document, parent: null, key: "" };
  const events = listIn(field(root, "traceEvents")).filter((event) => field(event, "ph").value === "X");
  const byCategory = (...names: readonly string[]): readonly Json[] =>
    events.filter((event) => names.includes(String(field(event, "cat").value).toLowerCase()));
  const steps = byCategory("user_annotation")
    .filter((event) => textIn(field(event, "name")).startsWith("ProfilerStep"))
    .map((event) => ({ name: textIn(field(event, "name")), ...spanOf(event) }))
    .toSorted((a, b) => a.start - b.start);
  const launched = new Map<number, number>();
  for (const event of byCategory("cuda_runtime", "cuda_driver")) {
    const correlation = argument(event, "correlation");
    if (typeof correlation.value === "number") launched.set(correlation.value, spanOf(event).start);
  }
  const stepOf = (event: Json): string | null => {
    const { value: correlation } = argument(event, "correlation");
    const time = typeof correlation === "number" ? launched.get(correlation) : undefined;
    return steps.find(({ start, end }) => time !== undefined && time >= start && time < end)?.name ?? null;
  };
  const slices = ownDevice(byCategory("kernel", "gpu_memcpy", "gpu_memset")).map((event): DeviceSlice => ({
    ...sliceOf(event),
    ...spanOf(event),
    step: stepOf(event),
  }));
  return {
    path,
    rank: rankOf(root, path, position),
    steps: steps.map(({ name }) => name),
    slices: slices.toSorted((a, b) => a.start - b.start),
  };
}

function rankOf(root: Json, path: string, position: number): number {
  const info = field(root, "distributedInfo");
  const said = isAbsent(info) ? null : field(info, "rank").value;
  if (typeof said === "number") return said;
  const [, digits] = /(\d+)\D*$/u.exec(path.replace(/(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?$/u, "")) ?? [];
  return digits === undefined ? position : Number(digits);
}

/** Microseconds in the file. */
function spanOf(event: Json): { readonly start: number; readonly end: number } {
  const [start, length] = [numberIn(field(event, "ts")), numberIn(field(event, "dur"))];
  if (!(length >= 0)) return wrongValue(field(event, "dur"), "a number that is not negative");
  return { start: start / 1000, end: (start + length) / 1000 };
}

function argument(event: Json, name: string): Json {
  const args = field(event, "args");
  return isAbsent(args) ? args : field(args, name);
}

/** A process may use several devices: the one that does most is the rank's. Copies between two do not say one. */
function ownDevice(events: readonly Json[]): readonly Json[] {
  const counts = new Map<unknown, number>();
  for (const event of events) {
    const { value: device } = argument(event, "device");
    if (device !== undefined) counts.set(device, (counts.get(device) ?? 0) + 1);
  }
  const [own] = [...counts].toSorted((a, b) => b[1] - a[1]);
  return events.filter((event) => [undefined, own?.[0]].includes(argument(event, "device").value));
}

function sliceOf(event: Json): Pick<DeviceSlice, "kind" | "collective"> {
  const name = textIn(field(event, "name"));
  const isKernel = String(field(event, "cat").value).toLowerCase() === "kernel";
  if (!isKernel && !/PtoP/u.test(name)) return { kind: "copy", collective: null };
  const collective = isKernel ? collectiveOf(event, name) : copyBetween(event);
  return { kind: collective === null ? "kernel" : "communication", collective };
}

function copyBetween(event: Json): TracedCollective {
  const { value: bytes } = argument(event, "bytes");
  return {
    op: "copy between GPUs",
    group: null,
    dtype: null,
    bytes: typeof bytes === "number" ? bytes : null,
    isPointToPoint: true,
  };
}

/** Kernels of NCCL, of NVSHMEM and of torch.ops.symm_mem. */
const kernelNames: readonly RegExp[] = [
  /^ncclDevKernel_([A-Za-z]+)/u,
  /^ncclKernel_([A-Za-z]+)/u,
  /^(nccl\w+)/u,
  /\b((?:one_shot|two_shot|multimem)_\w+?)(?:_kernel)?[<(]/u,
  /^(nvshmem\w+)/u,
];

function collectiveOf(event: Json, kernel: string): TracedCollective | null {
  const said = argument(event, "Collective name");
  const name = isAbsent(said) ? null : textIn(said);
  const ofKernel = kernelNames.flatMap((each) => each.exec(kernel)?.slice(1) ?? []).at(0);
  const op = name ?? ofKernel;
  if (op === undefined) return null;
  const { value: dtype } = argument(event, "dtype");
  const known = typeof dtype === "string" ? dtype : null;
  return {
    op,
    group: groupOf(event),
    dtype: known,
    bytes: messageBytes(event, known),
    isPointToPoint: /^(?:send|recv|SendRecv|coalesced)/u.test(op),
  };
}

function groupOf(event: Json): TracedCollective["group"] {
  const [name, description, ranks] = ["Process Group Name", "Process Group Description", "Process Group Ranks"].map(
    (key) => argument(event, key).value,
  );
  if (typeof name !== "string") return null;
  return {
    name,
    description: typeof description === "string" ? description : "",
    // Of large groups, PyTorch leaves out ranks in the middle: "[0, 1, ..., 63]".
    ranks: typeof ranks === "string" ? [...ranks.matchAll(/\d+/gu)].map(([digits]) => Number(digits)) : [],
  };
}

const elementBytes: ReadonlyMap<string, number> = new Map([
  ...["Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2"].map((name) => [name, 1] as const),
  ...["BFloat16", "Half", "Short"].map((name) => [name, 2] as const),
  ...["Float", "Int"].map((name) => [name, 4] as const),
  ...["Double", "Long", "ComplexFloat"].map((name) => [name, 8] as const),
]);

function messageBytes(event: Json, dtype: string | null): number | null {
  const size = dtype === null ? undefined : elementBytes.get(dtype);
  const counts = ["In msg nelems", "Out msg nelems"].flatMap((key) => {
    const { value } = argument(event, key);
    return typeof value === "number" ? [value] : [];
  });
  return size === undefined || counts.length === 0 ? null : size * Math.max(...counts);
}
