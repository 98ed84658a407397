/**
 * A program file exports a Fusion, or one host program per rank, as a function of the device count and of named
 * parameters. `program(defaults, build)` wraps that function; the command line's --set overrides the defaults.
 */
import { type Call, reject } from "../ir/ops/call.ts";
import { type Fusion, isFusion } from "../ir/api/fusion.ts";
import { type DType, dtypes, isDType } from "../numerics/dtype.ts";
import { keysOf } from "../support/invariant.ts";
import { type HostProgram, isHostProgram } from "./nodes.ts";

/** What program files import: the name in package.json. */
export const packageName = "@braid-compiler/braid";

/** Recognises program files from another copy of the package, where `instanceof` fails. */
const programMarker: unique symbol = Symbol.for("braid.program");

/** A number, or a dtype by name. */
export type ParameterValue = number | DType;

export type Parameters = Readonly<Record<string, ParameterValue>>;

/** Parameters of the same names with any values: a default "half" stands for any dtype. */
export type ParametersLike<P extends Parameters> = { readonly [K in keyof P]: P[K] extends DType ? DType : number };

export interface BuildContext<P extends Parameters> {
  /** The number of devices of the run. */
  readonly devices: number;
  /** The number of hosts, each with as many devices: 0 .. n-1 on the first, and so on. */
  readonly hosts: number;
  /** The rank whose host program is built. A Fusion is the same for all ranks and is built with rank 0. */
  readonly rank: number;
  readonly params: Readonly<P>;
}

/** What the function of a program file may return. */
export type Built = Fusion | HostProgram;

export interface BuildRequest<P extends Parameters> {
  readonly devices: number;
  /** 1 if not given. */
  readonly hosts?: number;
  /** 0 if not given. */
  readonly rank?: number;
  /** Values that replace defaults. */
  readonly params?: Partial<P>;
}

export interface ProgramOptions<P extends Parameters> {
  /** For host programs: a Fusion that computes the same from the same inputs. `--check` compares with its results. */
  readonly reference?: (context: Omit<BuildContext<P>, "rank">) => Fusion;
}

export interface ProgramFile<P extends Parameters = Parameters, B extends Built = Built> {
  readonly [programMarker]: true;
  readonly defaults: Readonly<P>;
  /**
   * Throws `device-count`, `option-unknown`, `option-value`, `program-invalid`, and any error of the program's own
   * calls.
   */
  readonly build: (request: BuildRequest<P>) => B;
  /** Null if the file names no reference. Throws the same as `build`. */
  readonly reference: ((request: BuildRequest<P>) => Fusion) | null;
}

/**
 * The default export of a program file. `build` makes a Fusion, or the HostProgram of `rank`, for a device count and
 * for parameters whose names and default values are those of `defaults`. Throws `option-value` if a default is neither
 * a finite number nor a dtype.
 */
export function program<P extends Parameters, B extends Built>(
  defaults: P,
  build: (context: BuildContext<ParametersLike<P>>) => B,
  options?: ProgramOptions<ParametersLike<P>>,
): ProgramFile<ParametersLike<P>, B>;
export function program<P extends Parameters, B extends Built>(
  defaults: P,
  build: (context: BuildContext<P>) => B,
  { reference }: ProgramOptions<P> = {},
): ProgramFile<P, B> {
  const place: Call = { kind: "call", text: "program(defaults, build)" };
  for (const [name, value] of Object.entries(defaults)) if (!isParameter(value)) badParameter(place, name, value);
  return Object.freeze({
    [programMarker]: true as const,
    defaults: Object.freeze({ ...defaults }),
    build: ({ devices, hosts = 1, rank = 0, params = {} }: BuildRequest<P>): B => {
      const built = build({ devices, hosts, rank, params: checked({ devices, hosts }, params, defaults) });
      return isFusion(built) || isHostProgram(built)
        ? built
        : notBuilt(place, "the program does not return a Fusion or a HostProgram", built, "a Fusion, or a HostProgram");
    },
    reference:
      reference === undefined
        ? null
        : ({ devices, hosts = 1, params = {} }: BuildRequest<P>): Fusion => {
            const made = reference({ devices, hosts, params: checked({ devices, hosts }, params, defaults) });
            return isFusion(made)
              ? made
              : notBuilt(place, "the reference of the program does not return a Fusion", made, "a Fusion");
          },
  });
}

interface Machines {
  readonly devices: number;
  readonly hosts: number;
}

function checked<P extends Parameters>(machines: Machines, params: Partial<P>, defaults: P): P {
  const usual: Parameters = defaults;
  requireDevices(machines);
  requireKnown(params, defaults);
  for (const [name, value] of Object.entries(params)) {
    if (!fitsParameter(usual[name], value)) badParameter(buildCall, name, value, usual[name]);
  }
  return { ...defaults, ...params };
}

const buildCall: Call = { kind: "call", text: "program.build({ devices, params })" };

function notBuilt(place: Call, message: string, found: unknown, expected: string): never {
  const pending = found instanceof Promise;
  return reject(place, "program-invalid", message, {
    found: found === null ? "null" : pending ? "a Promise" : typeof found,
    expected,
    help: pending
      ? "remove `async`; await what the function needs at the top of the file"
      : "end the function with `return f;`, or with `return builder.build();`",
  });
}

/** Whether `program`, of this or another copy of the package, made the value. */
export function isProgramFile(value: unknown): value is ProgramFile {
  if (typeof value !== "object" || value === null || !(programMarker in value)) return false;
  if (!("defaults" in value && "build" in value) || typeof value.build !== "function") return false;
  const { defaults } = value;
  return typeof defaults === "object" && defaults !== null && Object.values(defaults).every(isParameter);
}

function requireDevices({ devices, hosts }: Machines): void {
  const refuse = (message: string, found: string, expected: string, help: string): never =>
    reject(
      { kind: "call", text: `program.build({ devices: ${devices}${hosts === 1 ? "" : `, hosts: ${hosts}`} })` },
      { code: "device-count", message, found, expected, help },
    );
  for (const [what, count] of Object.entries({ devices, hosts })) {
    if (Number.isSafeInteger(count) && count >= 1) continue;
    refuse(
      `the number of ${what} is not a whole number of at least 1`,
      String(count),
      "a whole number of at least 1",
      `pass the number of ${what} of the run`,
    );
  }
  if (devices % hosts === 0) return;
  refuse(
    "the devices do not fill their hosts",
    `${devices} devices on ${hosts} hosts`,
    "as many devices on every host",
    "pass a multiple of the number of hosts",
  );
}

function requireKnown(params: object, defaults: object): void {
  const unknown = Object.keys(params).find((name) => !Object.hasOwn(defaults, name));
  if (unknown === undefined) return;
  const known = Object.keys(defaults);
  reject(buildCall, "option-unknown", `the program has no parameter ${unknown}`, {
    found: unknown,
    expected: known.length === 0 ? "no parameters" : `one of ${known.join(", ")}`,
    help: "set only parameters that the program declares",
  });
}

function isParameter(value: unknown): value is ParameterValue {
  return isDType(value) || (typeof value === "number" && Number.isFinite(value));
}

/** Whether a parameter with this default may have the value: a number for a number, a dtype for a dtype. */
export function fitsParameter(usual: ParameterValue | undefined, value: unknown): boolean {
  return isParameter(value) && isDType(value) === isDType(usual);
}

/** The values of a parameter with this default; of a default itself if there is none. */
export function expectedOfParameter(usual?: ParameterValue): string {
  const names = `a dtype: ${keysOf(dtypes).join(", ")}`;
  if (usual === undefined) return `a finite number, or ${names}`;
  return isDType(usual) ? names : "a finite number";
}

function badParameter(place: Call, name: string, value: unknown, usual?: ParameterValue): never {
  const noun = usual === undefined ? "number or dtype" : isDType(usual) ? "dtype" : "number";
  reject(place, "option-value", `parameter ${name} is not a ${noun}`, {
    found: String(value),
    expected: expectedOfParameter(usual),
    help: `give ${name} a ${noun}`,
  });
}

/**
 * Every rank has a host program and a command list: 65,536 of the smallest take seconds, a million would take minutes.
 */
export const mostDevices = 65_536;
