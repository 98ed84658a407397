/** Schedule options: they rewrite the linked Program, or choose how. */
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { assignments, changeValues, oneOf, text, toggle, wholeNumber } from "./kinds.ts";
import { onPrograms, type OptionRow, type RowsFor } from "./row.ts";

const schedule = { group: "schedule", commands: onPrograms } as const;

export const scheduleRows = {
  copyStream: {
    ...schedule,
    kind: oneOf(["dedicated", "inline"]),
    otherwise: "dedicated with --on cuda, else inline",
    help: "run copies between devices on a copy stream of each device, or where the host program issues them",
  },
  dropSignals: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "leave out signals between devices where others order everything already",
  },
  inPlace: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "leave out local copies whose source, or destination, can be used instead",
  },
  ownLast: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "compute the chunks that no other device waits for last",
  },
  splitChunks: {
    ...schedule,
    kind: wholeNumber(1, 2),
    help: "cut each copy between devices, and the GEMM that uses its chunk, into n parts",
  },
  earlyGathers: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "issue communication that waits for no kernel, such as the gathers of all chunks, before everything else",
  },
  gemmSums: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "let the GEMM of a device's own partial result add the other one; may change the last bits",
  },
  computeStreams: {
    ...schedule,
    kind: wholeNumber(1, 1),
    help: "run GEMMs on n compute streams in turn, and copies between devices on a copy stream",
  },
  batchSignals: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "wait for all peers before the first copy, signal all peers after the last",
  },
  smMargin: {
    ...schedule,
    kind: wholeNumber(1, 8),
    help: "SMs that GEMMs leave free for kernels that access peers' memory at the same time (--on cuda)",
  },
} as const satisfies RowsFor<ScheduleOptions>;

export const choiceRows = {
  scheduleChoice: {
    ...schedule,
    kind: oneOf(["given", "auto"]),
    default: "given",
    help: "use the schedule options as they are given, or choose the fastest schedule by simulation with --profile",
  },
  profile: {
    ...schedule,
    commands: [...onPrograms, "bench"],
    kind: text("file", "4xH200"),
    help: "machine profile to choose with: a file that braid calibrate wrote, or the name of a shipped profile",
  },
  whatIf: {
    ...schedule,
    commands: ["explain"],
    kind: assignments(changeValues, "gemm=1.2x"),
    default: new Map(),
    help: "also predict for another machine: gemm=1.2x, link=2x, link=900GB/s, memory=2x, network=50GB/s, devices=16, hosts=2; may be repeated",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;
