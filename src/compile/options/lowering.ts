/** Lowering options: they change the host program. --schedule assigns most of them. */
import { mostDevices } from "../../host/program-file.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { listOf, oneOf, text, toggle, wholeNumber } from "./kinds.ts";
import { onPrograms, type OptionRow, type RowsFor } from "./row.ts";

const lowering = { group: "lowering", commands: onPrograms } as const;

/** Values that --schedule assigns: no flags of their own. */
const scheduled = { ...lowering, within: "schedule" } as const;
const scheduledOff = { ...scheduled, kind: toggle, default: false } as const;

/** What --as decides. */
const fidelity = { group: "lowering", commands: [], within: "as", flag: "nvfuser" } as const;

export const loweringRows = {
  backend: {
    ...lowering,
    kind: oneOf(["nccl", "cuda", "ucc"]),
    default: "nccl",
    defaultOf: { compile: "cuda" },
    otherwiseOf: { compile: "cuda, since a plan has no calls of NCCL" },
    help: "communication backend to lower to; --on says where the program runs",
  },
  devicesPerHost: {
    ...lowering,
    commands: [...onPrograms, "calibrate"],
    kind: wholeNumber(1, 8, "n", mostDevices),
    otherwise: "all devices are on one host",
    help: "number of devices of each host; between hosts, the cuda backend communicates by NCCL",
  },
  p2p: {
    ...scheduled,
    kind: oneOf(["linear", "rotated", "broadcast"]),
    default: "rotated",
    help: "how a DID axis that becomes a Stream axis is lowered: linear for nccl, rotated for nccl and cuda, broadcast for all",
  },
  protocol: {
    ...scheduled,
    kind: oneOf(["get", "put"]),
    default: "get",
    help: "who copies in one-sided point-to-point: the receiver (get) or the sender (put); with --backend cuda only",
  },
  propagate: {
    ...scheduled,
    kind: toggle,
    default: true,
    help: "derive the shardings of tensors without an annotation",
  },
  nvfuserLimits: {
    ...fidelity,
    kind: toggle,
    default: false,
    help: "refuse what nvFuser refuses and communicate where it does, to compare dumps",
  },
  overlap: {
    ...scheduled,
    kind: toggle,
    default: true,
    help: "run communication under computation; overlap=false ignores Stream axes",
  },
  deviceLoops: {
    ...scheduledOff,
    help: "put communication beside a matmul in loops over the devices, without an annotation; with overlap=false, in place of Stream axes",
  },
  interStreamSync: {
    ...scheduledOff,
    help: "make stream i+1 wait for the point-to-point communication of stream i, in the first round",
  },
  insertReshardingAfter: { ...scheduledOff, help: "insert reshardings after the op instead of before it" },
  accumulate: {
    ...scheduledOff,
    help: "allow Stream on a contracted axis: a loop adds the matmuls of the chunks to the output in turn",
  },
  attention: {
    ...scheduled,
    kind: oneOf(["fused", "ops", "auto"]),
    default: "fused",
    help: "attention is one kernel (fused), matmuls and a softmax (ops), or one kernel where the back end has it (auto; default with --on cuda)",
  },
  deallocate: { ...scheduled, kind: toggle, default: true, help: "free buffers after their last use" },
  shrink: {
    ...scheduled,
    kind: toggle,
    default: true,
    help: "give a loop's buffers one slot per stream instead of their full extent",
  },
  disablePass: {
    ...lowering,
    commands: [],
    kind: listOf(text("name", "deallocate"), "name"),
    default: [],
    help: "passes to leave out, by name; in the API only",
  },
} as const satisfies RowsFor<LoweringOptions>;

export const recordingRows = {
  streams: {
    ...scheduled,
    kind: wholeNumber(1, 4),
    default: 4,
    help: "worker streams that a Stream loop alternates over",
  },
  allocator: {
    ...fidelity,
    kind: oneOf(["pytorch", "braid"]),
    otherwise: "pytorch for a dump, else braid",
    help: "where freed memory may be used again: on the stream that allocated it (pytorch), or that frees it (braid)",
  },
  communicators: {
    ...fidelity,
    kind: oneOf(["team", "pair"]),
    otherwise: "pair for a dump, else team",
    help: "on which communicator NCCL runs a send or receive outside a coalesced group: one for all ranks (team), or for two (pair)",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;
