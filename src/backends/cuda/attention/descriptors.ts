/**
 * Descriptors of cuDNN: objects of the library that get attributes, each an array of one type, and are finalized. They
 * are destroyed in reverse order, so that none outlives what it refers to.
 */
import { callFailed } from "../bindings/call-error.ts";
import {
  attributeNames,
  attributeTypes,
  CUDNN_STATUS_SUCCESS,
  type CudnnFunctions,
  descriptorTypes,
} from "../bindings/cudnn-api.ts";
import type { Out } from "../bindings/driver-api.ts";

type DescriptorType = keyof typeof descriptorTypes;
type AttributeName = keyof typeof attributeNames;

const integers = (values: readonly number[]): Uint8Array => bytesOf(Int32Array.from(values));
const longs = (values: readonly number[]): Uint8Array => bytesOf(BigInt64Array.from(values, BigInt));
const booleans = (values: readonly number[]): Uint8Array => Uint8Array.from(values);
const floats = (values: readonly number[]): Uint8Array => bytesOf(Float32Array.from(values));

/** How C reads the elements of each type: enumerations are ints, handles, pointers and descriptors 64 bits. */
const encodings = {
  CUDNN_TYPE_HANDLE: longs,
  CUDNN_TYPE_DATA_TYPE: integers,
  CUDNN_TYPE_BOOLEAN: booleans,
  CUDNN_TYPE_INT64: longs,
  CUDNN_TYPE_FLOAT: floats,
  CUDNN_TYPE_VOID_PTR: longs,
  CUDNN_TYPE_HEUR_MODE: integers,
  CUDNN_TYPE_POINTWISE_MODE: integers,
  CUDNN_TYPE_BACKEND_DESCRIPTOR: longs,
  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE: integers,
} as const satisfies { readonly [K in keyof typeof attributeTypes]: (values: readonly number[]) => Uint8Array };

function bytesOf({ buffer }: Int32Array | BigInt64Array | Float32Array): Uint8Array {
  return new Uint8Array(buffer);
}

/** Name, type and elements. Numbers of enumerations, 1 and 0 for booleans. */
export type DescriptorAttribute = readonly [AttributeName, keyof typeof encodings, readonly number[]];

/** A call that cuDNN refused. */
export interface Refusal {
  /** With what the descriptor is for: `cudnnBackendFinalize(matmul of the scores)`. */
  readonly call: string;
  readonly status: number;
  readonly name: string;
  /** cuDNN's message. */
  readonly text: string;
}

export interface Descriptors extends Disposable {
  /** A finalized descriptor, or why there is none. `what` names it in messages. */
  readonly attempt: (
    type: DescriptorType,
    what: string,
    attributes: readonly DescriptorAttribute[],
  ) => number | Refusal;
  /** Throws `gpu-call-failed`. */
  readonly make: (type: DescriptorType, what: string, attributes: readonly DescriptorAttribute[]) => number;
  /** Up to `most` descriptors of an attribute. Throws `gpu-call-failed`. */
  readonly descriptorsIn: (
    descriptor: number,
    name: AttributeName,
    type: DescriptorType,
    most: number,
  ) => readonly number[];
  readonly integerIn: (descriptor: number, name: AttributeName) => number;
}

export function createDescriptors(raw: CudnnFunctions, rank: number): Descriptors {
  const made: number[] = [];
  const refusal = (call: string, status: number): Refusal => ({
    call,
    status,
    name: raw.cudnnGetErrorString(status),
    text: lastError(raw),
  });
  const create = (type: DescriptorType, what: string): number | Refusal => {
    const descriptor: Out = [0];
    const status = raw.cudnnBackendCreateDescriptor(descriptorTypes[type], descriptor);
    if (status !== CUDNN_STATUS_SUCCESS) return refusal(`cudnnBackendCreateDescriptor(${what})`, status);
    made.push(Number(descriptor[0]));
    return Number(descriptor[0]);
  };
  const attempt: Descriptors["attempt"] = (type, what, attributes) => {
    const descriptor = create(type, what);
    if (typeof descriptor !== "number") return descriptor;
    for (const [name, kind, values] of attributes) {
      const bytes = encodings[kind](values);
      const numbers = [attributeNames[name], attributeTypes[kind], values.length] as const;
      const status = raw.cudnnBackendSetAttribute(descriptor, ...numbers, bytes);
      if (status !== CUDNN_STATUS_SUCCESS) return refusal(`cudnnBackendSetAttribute(${what}, ${name})`, status);
    }
    const status = raw.cudnnBackendFinalize(descriptor);
    return status === CUDNN_STATUS_SUCCESS ? descriptor : refusal(`cudnnBackendFinalize(${what})`, status);
  };
  const required = <T>(result: T | Refusal): T => (isRefusal(result) ? callFailed({ rank, ...result }) : result);
  const get = (
    descriptor: number,
    name: AttributeName,
    kind: keyof typeof encodings,
    values: BigInt64Array,
  ): number => {
    const count: Out = [0];
    const numbers = [attributeNames[name], attributeTypes[kind], values.length] as const;
    const status = raw.cudnnBackendGetAttribute(descriptor, ...numbers, count, new Uint8Array(values.buffer));
    if (status !== CUDNN_STATUS_SUCCESS) required(refusal(`cudnnBackendGetAttribute(${name})`, status));
    return Number(count[0]);
  };
  return {
    attempt,
    make: (type, what, attributes) => required(attempt(type, what, attributes)),
    descriptorsIn: (descriptor, name, type, most) => {
      // The library fills in descriptors that the caller creates.
      const created = Array.from({ length: most }, () => required(create(type, name)));
      const count = get(descriptor, name, "CUDNN_TYPE_BACKEND_DESCRIPTOR", BigInt64Array.from(created, BigInt));
      return created.slice(0, count);
    },
    integerIn: (descriptor, name) => {
      const value = BigInt64Array.of(0n);
      get(descriptor, name, "CUDNN_TYPE_INT64", value);
      return Number(value[0]);
    },
    [Symbol.dispose]: () => {
      for (const descriptor of made.splice(0).toReversed()) raw.cudnnBackendDestroyDescriptor(descriptor);
    },
  };
}

export function isRefusal(result: unknown): result is Refusal {
  return typeof result === "object" && result !== null && "call" in result;
}

const messageBytes = 2048;

/** cuDNN's description of the last call that failed. */
export function lastError(raw: CudnnFunctions): string {
  const message = new Uint8Array(messageBytes);
  raw.cudnnGetLastErrorString(message, messageBytes);
  const end = message.indexOf(0);
  return new TextDecoder().decode(message.subarray(0, end < 0 ? messageBytes : end)).trim();
}
