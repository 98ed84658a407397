/** Program options: devices, parameters, sizes, and what to read of a file. */
import { mostDevices } from "../../host/most-devices.ts";
import { fidelity } from "./as.ts";
import { assignments, parameterValues, sizeValues, text, wholeNumber, wholeValues } from "./kinds.ts";
import { onMachines, onPrograms, type OptionRow } from "./row.ts";

const program = { group: "program", commands: onPrograms } as const;

export const programRows = {
  devices: {
    ...program,
    commands: [...onPrograms, ...onMachines],
    kind: wholeNumber(1, 8, "n", mostDevices),
    default: 8,
    defaultOf: { bench: 4, calibrate: 4 },
    help: "number of devices",
  },
  set: {
    ...program,
    kind: assignments(parameterValues, "M=32"),
    default: new Map(),
    help: "replace a parameter of the program by another number or dtype; may be repeated",
  },
  sizes: {
    ...program,
    kind: assignments(sizeValues, "i0=8"),
    default: new Map(),
    help: "size of a symbolic extent, by its printed name; may be repeated",
  },
  scalar: {
    ...program,
    kind: assignments(wholeValues, "flag=1"),
    default: new Map(),
    help: "value of a scalar that a host program leaves open, such as a predicate (1: true); may be repeated",
  },
  reference: {
    ...program,
    commands: ["run", "verify"],
    kind: text("file", "reference.ts"),
    help: "for a dump: a program file whose Fusion braid run --check compares with; --set is for its parameters",
  },
  entry: {
    ...program,
    kind: text("function", "main"),
    otherwise: "main, or the only one",
    help: "the function to read of a model file, or the container of a dump that all ranks run, counted from 0",
  },
  plan: {
    ...program,
    kind: text("file|auto", "plan.json"),
    help: "for a model file without shardings (.pt2): how its modules lie on devices; auto: the plan of its family",
  },
  gradients: {
    ...program,
    kind: text("name", "dy"),
    help: "for a .pt2 model: add the gradients of its parameters; the cotangent of its outputs is an input of this name",
  },
  as: {
    ...program,
    kind: fidelity,
    otherwise: "nvfuser for a dump, else braid",
    help: "nvfuser or braid: whose host programs these are, and with :2025-05 in whose spelling; nvfuser's have its limits, free no buffers and run on PyTorch's allocator (docs/nvfuser.md)",
  },
  rank: {
    ...program,
    commands: ["lower"],
    kind: wholeNumber(0, 1),
    default: 0,
    help: "the rank to lower for",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;
