/**
 * The WebAssembly binary format, as far as generated kernels need it: numbers, and a module of functions over one
 * imported memory.
 */

/** Bytes of instructions that leave a value, or none, on the stack. */
export type Code = readonly number[];

export const valueTypes = { i32: 0x7f, v128: 0x7b } as const;
export type LocalType = keyof typeof valueTypes;

export interface WasmFunction {
  readonly name: string;
  /** All are i32. */
  readonly parameters: number;
  /** Their indices follow those of the parameters. */
  readonly locals: readonly LocalType[];
  readonly body: Code;
}

/** LEB128 of a number from 0 to 2^32 - 1. */
export function unsigned(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest > 0 ? low + 128 : low);
  } while (rest > 0);
  return bytes;
}

/** Signed LEB128 of the low 32 bits of a number. */
export function signed32(value: number): Code {
  const bytes: number[] = [];
  let rest = value | 0;
  for (;;) {
    const low = rest & 0x7f;
    rest >>= 7;
    if ((rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0)) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

/** In pages of 64 KiB. Any memory fits the import. */
const memoryLimits = { shared: [0x03, ...unsigned(1), ...unsigned(65536)], unshared: [0x00, ...unsigned(1)] } as const;

/** The magic number and version 1. */
const wasmHeader: Code = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

const endOfFunction = 0x0b;

/** A module that imports `env.memory` and exports its functions. */
export function encodeModule(functions: readonly WasmFunction[], memory: "shared" | "unshared"): Uint8Array {
  const types = functions.map(({ parameters }) => [
    0x60,
    ...vector(Array.from({ length: parameters }, () => [valueTypes.i32])),
    ...vector([]),
  ]);
  const bodies = functions.map(({ locals, body }) => {
    const code = [...vector(runs(locals)), ...body, endOfFunction];
    return [...unsigned(code.length), ...code];
  });
  return Uint8Array.from([
    ...wasmHeader,
    ...section(1, vector(types)),
    ...section(2, vector([[...name("env"), ...name("memory"), 0x02, ...memoryLimits[memory]]])),
    ...section(3, vector(functions.map((_, i) => unsigned(i)))),
    ...section(7, vector(functions.map((each, i) => [...name(each.name), 0x00, ...unsigned(i)]))),
    ...section(10, vector(bodies)),
  ]);
}

/** Adjacent locals of one type share a declaration. */
function runs(locals: readonly LocalType[]): readonly Code[] {
  const groups: { readonly type: LocalType; count: number }[] = [];
  for (const type of locals) {
    const last = groups.at(-1);
    if (last?.type === type) last.count++;
    else groups.push({ type, count: 1 });
  }
  return groups.map(({ type, count }) => [...unsigned(count), valueTypes[type]]);
}

function vector(items: readonly Code[]): Code {
  return [...unsigned(items.length), ...items.flat()];
}

function section(id: number, content: Code): Code {
  return [id, ...unsigned(content.length), ...content];
}

/** ASCII. */
function name(text: string): Code {
  return [...unsigned(text.length), ...Array.from(text, (letter) => letter.charCodeAt(0))];
}
