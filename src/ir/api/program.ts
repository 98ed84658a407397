/**
 * A program is a Fusion with parameters: what a program file exports. `build` makes the Fusion for a device count and
 * parameter values; the command line's --set overrides the defaults.
 */
import { type Call, reject } from "../call.ts";
import { type Fusion, isFusion } from "./fusion.ts";

/** Marks programs across copies of the package, where `instanceof` fails. */
const programMarker: unique symbol = Symbol.for("braid.program");

export type Parameters = Readonly<Record<string, number>>;

export interface BuildContext<P extends Parameters> {
  /** The number of devices of the run. */
  readonly devices: number;
  readonly params: Readonly<P>;
}

interface BuildRequest<P extends Parameters> {
  readonly devices: number;
  /** Values that replace defaults. */
  readonly params?: Partial<P>;
}

export interface Program<P extends Parameters = Parameters> {
  readonly [programMarker]: true;
  readonly defaults: Readonly<P>;
  /** Throws `device-count`, `option-unknown`, `option-value`, `program-invalid`, and what the program's own calls throw. */
  readonly build: (request: BuildRequest<P>) => Fusion;
}

export function program<P extends Parameters>(defaults: P, build: (context: BuildContext<P>) => Fusion): Program<P> {
  const place: Call = { kind: "call", text: "program(defaults, build)" };
  requireNumbers(defaults, place);
  return Object.freeze({
    [programMarker]: true as const,
    defaults: Object.freeze({ ...defaults }),
    build: ({ devices, params = {} }: BuildRequest<P>): Fusion => {
      requireDevices(devices);
      requireKnown(params, defaults);
      requireNumbers(params, { kind: "call", text: "program.build({ devices, params })" });
      const fusion: unknown = build({ devices, params: { ...defaults, ...params } });
      if (isFusion(fusion)) return fusion;
      return reject(place, {
        code: "program-invalid",
        message: "the program does not return a Fusion",
        found: fusion === null ? "null" : typeof fusion,
        expected: "a Fusion",
        help: "end the build function with `return f;`",
      });
    },
  });
}

/** Whether a value was made by `program`, of this or another copy of the package. */
export function isProgram(value: unknown): value is Program {
  return typeof value === "object" && value !== null && programMarker in value;
}

function requireDevices(devices: number): void {
  if (Number.isSafeInteger(devices) && devices >= 1) return;
  reject(
    { kind: "call", text: `program.build({ devices: ${devices} })` },
    {
      code: "device-count",
      message: "the number of devices is not a whole number of at least 1",
      found: String(devices),
      expected: "a whole number of at least 1",
      help: "pass the number of devices of the run",
    },
  );
}

function requireKnown(params: object, defaults: object): void {
  const unknown = Object.keys(params).find((name) => !Object.hasOwn(defaults, name));
  if (unknown === undefined) return;
  const known = Object.keys(defaults);
  reject(
    { kind: "call", text: "program.build({ devices, params })" },
    {
      code: "option-unknown",
      message: `the program has no parameter ${unknown}`,
      found: unknown,
      expected: known.length === 0 ? "no parameters" : `one of ${known.join(", ")}`,
      help: "set only parameters that the program declares",
    },
  );
}

function requireNumbers(params: Readonly<Record<string, unknown>>, place: Call): void {
  for (const [name, value] of Object.entries(params)) {
    if (typeof value === "number" && Number.isFinite(value)) continue;
    reject(place, {
      code: "option-value",
      message: `parameter ${name} is not a number`,
      found: String(value),
      expected: "a finite number",
      help: `give ${name} a number`,
    });
  }
}
