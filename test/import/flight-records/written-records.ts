/**
 * Flight records as PyTorch writes them: the fields of torch/csrc/distributed/c10d/FlightRecorderDetail.hpp, version
 * 2.10, as JSON and as the pickle of its C++ pickler (protocol 2, texts and values memoized).
 */
import { readTorchRecord, type TorchRecord } from "../../../src/import/flight-records/torch-record.ts";

export interface WrittenEntry {
  /** `all_reduce`, `send 0->1`. */
  readonly op: string;
  readonly group?: string;
  readonly number?: number;
  readonly inputs?: readonly (readonly number[])[];
  readonly outputs?: readonly (readonly number[])[];
  readonly dtype?: string;
  readonly state?: "scheduled" | "started" | "completed";
  readonly retired?: boolean;
  readonly isP2p?: boolean;
  /** Line of train.py. */
  readonly line?: number;
}

/** By name: description and ranks. */
export type WrittenGroups = Readonly<Record<string, readonly [description: string, ranks: readonly number[]]>>;

const world: WrittenGroups = { "0": ["default_pg", [0, 1]] };

/** Of the first entry, in nanoseconds. */
const start = 1764352800e9;

/** Numbers that an entry does not give count up, for each group and kind. */
export function documentOf(
  entries: readonly WrittenEntry[],
  groups: WrittenGroups = world,
  { firstId = 0, hasFrames = true } = {},
): Readonly<Record<string, unknown>> {
  const counts = new Map<string, number>();
  const written = entries.map((entry, i) => {
    const { op, group = "0", inputs = [[4, 4]], outputs = inputs, dtype = "Float", state = "completed" } = entry;
    const { isP2p = /^(?:send|recv) /u.test(op), retired = state === "completed", line } = entry;
    const key = `${group} ${isP2p}`;
    const number = entry.number ?? (counts.get(key) ?? 0) + 1;
    counts.set(key, number);
    const frames = [
      { name: op.split(" ")[0], filename: "/site-packages/torch/distributed/distributed_c10d.py", line: 2696 },
      ...(line === undefined ? [] : [{ name: "step", filename: "train.py", line }]),
      { name: "<module>", filename: "train.py", line: 200 },
    ];
    return {
      ...(hasFrames ? { frames } : {}),
      record_id: firstId + i,
      pg_id: Number(group),
      process_group: [group, groups[group]?.[0] ?? "undefined"],
      thread_name: "pt_main_thread",
      thread_id: "140737353",
      collective_seq_id: isP2p ? 0 : number,
      p2p_seq_id: isP2p ? number : 0,
      op_id: i + 1,
      profiling_name: `nccl:${op}`,
      time_created_ns: start + 3e6 * i,
      ...(state === "completed" ? { duration_ms: 0.5 } : {}),
      input_sizes: inputs,
      input_dtypes: inputs.map(() => dtype),
      output_sizes: outputs,
      output_dtypes: outputs.map(() => dtype),
      state,
      time_discovered_started_ns: state === "scheduled" ? null : start + 3e6 * i + 1e6,
      time_discovered_completed_ns: state === "completed" ? start + 3e6 * i + 2e6 : null,
      retired,
      timeout_ms: 600000,
      is_p2p: isP2p,
    };
  });
  return {
    version: "2.10",
    comm_lib_version: "2.27.5",
    pg_config: Object.fromEntries(
      Object.entries(groups).map(([name, [desc, ranks]]) => [name, { name, desc, ranks: `[${ranks.join(", ")}]` }]),
    ),
    pg_status: {
      "0": { last_enqueued_collective: 1, last_started_collective: 1, last_completed_collective: 1 },
    },
    entries: written,
  };
}

/** One record for each list, of ranks 0, 1, ... */
export function recordsOf(
  lists: readonly (readonly WrittenEntry[])[],
  groups: WrittenGroups = { "0": ["default_pg", lists.map((_, rank) => rank)] },
  options: { readonly firstId?: number; readonly hasFrames?: boolean } = {},
): readonly TorchRecord[] {
  return lists.map((entries, rank) =>
    readTorchRecord(jsonBytes(documentOf(entries, groups, options)), `nccl_trace_rank_${rank}`),
  );
}

export function jsonBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** As torch/csrc/jit/serialization/pickler.cpp writes plain values; pairs become tuples. */
export function pickleBytes(value: unknown): Uint8Array {
  const bytes: number[] = [0x80, 2];
  const memo = new Map<unknown, number>();
  const u32 = (number: number): readonly number[] => [0, 8, 16, 24].map((shift) => (number >>> shift) & 255);
  const put = (key: unknown): void => {
    const place = memo.size;
    memo.set(key, place);
    if (place < 256) bytes.push(113, place);
    else bytes.push(114, ...u32(place));
  };
  const push = (each: unknown): void => {
    const known = typeof each === "string" || (typeof each === "object" && each !== null) ? memo.get(each) : undefined;
    if (known !== undefined) {
      if (known < 256) bytes.push(104, known);
      else bytes.push(106, ...u32(known));
      return;
    }
    if (each === null) bytes.push(78);
    else if (typeof each === "boolean") bytes.push(each ? 0x88 : 0x89);
    else if (typeof each === "string") {
      const text = new TextEncoder().encode(each);
      bytes.push(88, ...u32(text.length), ...text);
      put(each);
    } else if (typeof each === "number") pushNumber(each);
    else if (Array.isArray(each)) {
      const isPair = each.length === 2 && each.every((part) => typeof part === "string");
      if (!isPair) bytes.push(93, 40);
      for (const part of each) push(part);
      bytes.push(isPair ? 0x86 : 101);
      put(each);
    } else if (typeof each === "object") {
      bytes.push(125, 40);
      for (const [key, part] of Object.entries(each)) {
        push(key);
        push(part);
      }
      bytes.push(117);
      put(each);
    }
  };
  const pushNumber = (number: number): void => {
    if (!Number.isInteger(number)) {
      const view = new DataView(new ArrayBuffer(8));
      view.setFloat64(0, number);
      bytes.push(71, ...new Uint8Array(view.buffer));
    } else if (number >= 0 && number < 256) bytes.push(75, number);
    else if (number >= 0 && number < 65536) bytes.push(77, number & 255, number >> 8);
    else if (Math.abs(number) < 2 ** 31) bytes.push(74, ...u32(number));
    else {
      const view = new DataView(new ArrayBuffer(8));
      view.setBigInt64(0, BigInt(number), true);
      bytes.push(0x8a, 8, ...new Uint8Array(view.buffer));
    }
  };
  push(value);
  bytes.push(46);
  return new Uint8Array(bytes);
}
