/** Program options: devices, parameters, sizes, and the container of a dump. */
import { mostDevices } from "../../host/most-devices.ts";
import type { ParseOptions } from "../../host/parse/parse.ts";
import {
  assignments,
  oneOf,
  parameterValues,
  seconds,
  sizeValues,
  text,
  toggle,
  wholeNumber,
  wholeValues,
} from "./kinds.ts";
import { onMachines, onPrograms, type OptionRow, type RowsFor } from "./row.ts";

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
    help: "for a model file of several functions: the one to read (default: main, or the only one)",
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
  container: {
    ...program,
    kind: wholeNumber(0, 0),
    help: "for a dump: the container that all ranks run, counted from 0",
  },
  roots: {
    ...program,
    kind: oneOf(["era", "devices", "positions"]),
    default: "era",
    help: "for a dump: whether constant roots are device ids or positions in the team; era: as in the dump's era",
  },
  buildTimeout: {
    ...program,
    kind: seconds,
    default: 60,
    help: "refuse a program file that takes longer than this many seconds to build its program",
  },
  full: {
    ...program,
    commands: ["verify"],
    kind: toggle,
    default: false,
    help: "verify every rank, even where one rank of each class stands for the others",
  },
  rank: {
    ...program,
    commands: ["lower"],
    kind: wholeNumber(0, 1),
    default: 0,
    help: "the rank to lower for",
  },
} as const satisfies Readonly<Record<string, OptionRow>> & RowsFor<Pick<ParseOptions, "roots">>;
