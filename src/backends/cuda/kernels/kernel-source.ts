/**
 * The result of a generator: the text of one kernel, how it is launched, and the memory that each of its pointer
 * parameters takes.
 */
import type { NestMemory } from "../../../kernels/nests/nest.ts";

export interface KernelSource {
  /** The complete source; the kernel is `extern "C"` and named `kernelName`. */
  readonly text: string;
  readonly grid: readonly [x: number, y: number, z: number];
  readonly block: readonly [x: number, y: number, z: number];
  /** A pointer to memory, or an origin of the launch, in the order of the kernel's parameters. 64 bits each. */
  readonly parameters: readonly Parameter[];
  /** Of dynamic shared memory; none if absent. */
  readonly sharedBytes?: number;
}

/** A parameter of a kernel: memory, or the launch's origin at a position. */
export type Parameter = NestMemory | OriginParameter;

export interface OriginParameter {
  readonly kind: "origin";
  readonly position: number;
}

export const kernelName = "braid_kernel";

export function memoryKey(memory: Parameter): string {
  return memory.kind === "scratch" ? `scratch${memory.offset}` : `${memory.kind}${memory.position}`;
}

/**
 * The name of the parameter that points to `memory`, given all parameters. Scratch places are numbered, so the text
 * does not depend on offsets.
 */
export function parameterName(parameters: readonly Parameter[], memory: Parameter): string {
  if (memory.kind !== "scratch") return `${memory.kind}${memory.position}`;
  const places = parameters.filter(({ kind }) => kind === "scratch").map(memoryKey);
  return `scratch${places.indexOf(memoryKey(memory))}`;
}

/** Every parameter once, in order of first mention. */
export function distinctParameters<T extends Parameter>(memories: readonly T[]): readonly T[] {
  return [...new Map(memories.map((memory) => [memoryKey(memory), memory])).values()];
}

/** Two spaces per open brace; directives at the margin. */
export function indented(lines: readonly string[]): string {
  let depth = 0;
  return lines
    .map((line) => {
      if (line.startsWith("}")) depth--;
      const text = line.startsWith("#") ? line : `${"  ".repeat(depth)}${line}`;
      if (line.endsWith("{")) depth++;
      return text;
    })
    .join("\n");
}
