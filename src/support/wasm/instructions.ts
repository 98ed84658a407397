/**
 * Instructions as functions from the code of their operands to code. Opcodes are from the WebAssembly 2.0
 * specification.
 */
import { type Code, signed32, unsigned } from "./encoding.ts";

/** Opcodes after the prefix 0xfd, for instructions without immediates. */
const vectorOpcodes = {
  "i32x4.splat": 17,
  "i64x2.splat": 18,
  "f32x4.splat": 19,
  "f64x2.splat": 20,
  "i32x4.eq": 55,
  "i32x4.ne": 56,
  "i32x4.lt_s": 57,
  "i32x4.lt_u": 58,
  "i32x4.gt_s": 59,
  "i32x4.le_s": 61,
  "i32x4.ge_s": 63,
  "f32x4.eq": 65,
  "f32x4.ne": 66,
  "f32x4.lt": 67,
  "f32x4.gt": 68,
  "f32x4.le": 69,
  "f32x4.ge": 70,
  "f64x2.eq": 71,
  "f64x2.ne": 72,
  "f64x2.lt": 73,
  "f64x2.gt": 74,
  "f64x2.le": 75,
  "f64x2.ge": 76,
  "v128.and": 78,
  "v128.andnot": 79,
  "v128.or": 80,
  "v128.xor": 81,
  "v128.bitselect": 82,
  "f32x4.demote_f64x2_zero": 94,
  "f64x2.promote_low_f32x4": 95,
  "i8x16.narrow_i16x8_u": 102,
  "f32x4.ceil": 103,
  "f32x4.floor": 104,
  "f32x4.trunc": 105,
  "f32x4.nearest": 106,
  "f64x2.ceil": 116,
  "f64x2.floor": 117,
  "f64x2.trunc": 122,
  "i16x8.narrow_i32x4_u": 134,
  "i16x8.extend_low_i8x16_u": 137,
  "f64x2.nearest": 148,
  "i32x4.abs": 160,
  "i32x4.neg": 161,
  "i32x4.extend_low_i16x8_u": 169,
  "i32x4.shl": 171,
  "i32x4.shr_s": 172,
  "i32x4.shr_u": 173,
  "i32x4.add": 174,
  "i32x4.sub": 177,
  "i32x4.mul": 181,
  "i32x4.min_s": 182,
  "i32x4.min_u": 183,
  "i32x4.max_s": 184,
  "i64x2.abs": 192,
  "i64x2.neg": 193,
  "i64x2.extend_low_i32x4_s": 199,
  "i64x2.extend_high_i32x4_s": 200,
  "i64x2.shl": 203,
  "i64x2.shr_s": 204,
  "i64x2.add": 206,
  "i64x2.sub": 209,
  "i64x2.mul": 213,
  "i64x2.eq": 214,
  "i64x2.ne": 215,
  "i64x2.lt_s": 216,
  "i64x2.gt_s": 217,
  "i64x2.le_s": 218,
  "i64x2.ge_s": 219,
  "i64x2.extmul_low_i32x4_u": 222,
  "i64x2.extmul_high_i32x4_u": 223,
  "f32x4.abs": 224,
  "f32x4.neg": 225,
  "f32x4.sqrt": 227,
  "f32x4.add": 228,
  "f32x4.sub": 229,
  "f32x4.mul": 230,
  "f32x4.div": 231,
  "f32x4.min": 232,
  "f32x4.max": 233,
  "f32x4.pmin": 234,
  "f32x4.pmax": 235,
  "f64x2.abs": 236,
  "f64x2.neg": 237,
  "f64x2.sqrt": 239,
  "f64x2.add": 240,
  "f64x2.sub": 241,
  "f64x2.mul": 242,
  "f64x2.div": 243,
  "f64x2.min": 244,
  "f64x2.max": 245,
  "f64x2.pmin": 246,
  "f64x2.pmax": 247,
  "i32x4.trunc_sat_f32x4_s": 248,
  "f32x4.convert_i32x4_s": 250,
  "i32x4.trunc_sat_f64x2_s_zero": 252,
  "f64x2.convert_low_i32x4_s": 254,
} as const;

export type VectorInstruction = keyof typeof vectorOpcodes;

const loadOpcodes = {
  "v128.load": 0,
  "v128.load16x4_u": 4,
  "v128.load8_splat": 7,
  "v128.load16_splat": 8,
  "v128.load32_splat": 9,
  "v128.load64_splat": 10,
  "v128.load32_zero": 92,
  "v128.load64_zero": 93,
} as const;

/** By the number of bits in a lane. */
const loadLaneOpcodes = { 8: 84, 16: 85, 32: 86, 64: 87 } as const;
const storeLaneOpcodes = { 8: 88, 16: 89, 32: 90, 64: 91 } as const;
export type LaneBits = keyof typeof loadLaneOpcodes;

const laneOpcodes = {
  i32x4: { extract: 27, replace: 28 },
  i64x2: { extract: 29, replace: 30 },
  f32x4: { extract: 31, replace: 32 },
  f64x2: { extract: 33, replace: 34 },
} as const;
export type VectorShape = keyof typeof laneOpcodes;

const scalarCodes = {
  "i32.div_s": [0x6d],
  "i32.rem_s": [0x6f],
  "i32.shl": [0x74],
  "i32.shr_s": [0x75],
  "i64.div_s": [0x7f],
  "i64.rem_s": [0x81],
  "i64.shl": [0x86],
  "i64.shr_s": [0x87],
  "f32.convert_i64_s": [0xb4],
  "f64.convert_i64_s": [0xb9],
  "i64.trunc_sat_f32_s": [0xfc, 4],
  "i64.trunc_sat_f64_s": [0xfc, 6],
} as const;

/** A memory operand: the local that holds an address, and an offset in bytes. */
export interface Place {
  readonly pointer: number;
  readonly offset: number;
}

export function vector(instruction: VectorInstruction, ...operands: readonly Code[]): Code {
  return [...operands.flat(), 0xfd, ...unsigned(vectorOpcodes[instruction])];
}

export function scalar(instruction: keyof typeof scalarCodes, ...operands: readonly Code[]): Code {
  return [...operands.flat(), ...scalarCodes[instruction]];
}

export function load(instruction: keyof typeof loadOpcodes, place: Place): Code {
  return [...get(place.pointer), 0xfd, ...unsigned(loadOpcodes[instruction]), ...immediate(place)];
}

export function loadLane(bits: LaneBits, place: Place, lane: number, into: Code): Code {
  return [...get(place.pointer), ...into, 0xfd, ...unsigned(loadLaneOpcodes[bits]), ...immediate(place), lane];
}

export function store(place: Place, value: Code): Code {
  return [...get(place.pointer), ...value, 0xfd, ...unsigned(11), ...immediate(place)];
}

export function storeLane(bits: LaneBits, place: Place, lane: number, value: Code): Code {
  return [...get(place.pointer), ...value, 0xfd, ...unsigned(storeLaneOpcodes[bits]), ...immediate(place), lane];
}

export function extractLane(shape: VectorShape, lane: number, value: Code): Code {
  return [...value, 0xfd, ...unsigned(laneOpcodes[shape].extract), lane];
}

export function replaceLane(shape: VectorShape, lane: number, value: Code, element: Code): Code {
  return [...value, ...element, 0xfd, ...unsigned(laneOpcodes[shape].replace), lane];
}

/** Selects four 32-bit words of `a` (0 to 3) and `b` (4 to 7). */
export function shuffleWords(words: readonly [number, number, number, number], a: Code, b: Code): Code {
  const bytes = words.flatMap((word) => [0, 1, 2, 3].map((byte) => 4 * word + byte));
  return [...a, ...b, 0xfd, ...unsigned(13), ...bytes];
}

/** The 16 bytes of `elements`. */
export function vectorConstant(elements: Int32Array | Float32Array | Float64Array | BigInt64Array): Code {
  return [0xfd, ...unsigned(12), ...new Uint8Array(elements.buffer, elements.byteOffset, 16)];
}

export function wordsConstant(word: number): Code {
  return vectorConstant(Int32Array.of(word, word, word, word));
}

export function get(local: number): Code {
  return [0x20, ...unsigned(local)];
}

export function set(local: number, value: Code): Code {
  return [...value, 0x21, ...unsigned(local)];
}

export function number(value: number): Code {
  return [0x41, ...signed32(value)];
}

/** Adds to an i32 local. */
export function advance(local: number, by: number): Code {
  return by === 0 ? [] : set(local, [...get(local), ...number(by), 0x6a]);
}

/** Runs `body` `counter` times, at least once. The counter ends at 0. */
export function countDown(counter: number, body: Code): Code {
  const next = [...get(counter), ...number(-1), 0x6a, 0x22, ...unsigned(counter)];
  return [0x03, 0x40, ...body, ...next, 0x0d, 0x00, 0x0b];
}

/** Runs `body` if the local is 0. */
export function whenZero(local: number, body: Code): Code {
  return [...get(local), 0x45, 0x04, 0x40, ...body, 0x0b];
}

/** The alignment hint is 2^0; on today's engines it makes no difference. */
function immediate({ offset }: Place): Code {
  return [0, ...unsigned(offset)];
}
