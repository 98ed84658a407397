/**
 * Runs generated CUDA kernels on the CPU, which checks them on machines without a GPU. Their sources are compiled as
 * C++ with a few definitions, all cases of a test as one program. GEMMs become the generated kernel, never cuBLASLt.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { kernelName, type KernelSource } from "../../../../src/backends/cuda/kernels/kernel-source.ts";
import { kernelSteps } from "../../../../src/backends/cuda/kernels/plan/kernel-steps.ts";
import { gemmKernel } from "../../../../src/backends/cuda/kernels/gemm-kernel.ts";
import type { Kernel, Operand } from "../../../../src/commands/kernel.ts";
import type { NestMemory } from "../../../../src/kernels/nests/nest.ts";
import { dtypes } from "../../../../src/numerics/dtype.ts";
import { elementsOf, storageView } from "../../../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../../../src/support/invariant.ts";
import { offsetsOf, spanBytes, type Values } from "../../../kernels/run-kernel.ts";
import { headerFolder, programOf } from "./compiler.ts";

export interface EmulatedCase {
  readonly kernel: Kernel;
  /** Row-major elements of every input. */
  readonly inputs: readonly Values[];
  /** What the outputs hold before, for kernels that add to them. */
  readonly held?: readonly Values[];
  readonly origins?: readonly number[];
}

interface Launch {
  readonly source: KernelSource;
  /** The text of each parameter: an address in the image, or an origin. */
  readonly parameters: readonly string[];
}

interface Laid {
  readonly addresses: readonly number[];
  readonly launches: readonly Launch[];
  readonly image: Uint8Array;
  /** Where the scratch lies: nothing is promised about what is left in it. */
  readonly scratch: Span;
  /** Of operands and the scratch, in order. */
  readonly spans: readonly Span[];
}

/** Bytes from the start of the image. */
interface Span {
  readonly start: number;
  readonly end: number;
}

const guard = 0xa5;
/** In outputs and scratch: NaN in every float dtype, so that reading what was never written is seen. */
const unwritten = 0xff;
/** Has AddressSanitizer refuse accesses beside the operands and the scratch. */
// oxlint-disable-next-line node/no-process-env -- set by whoever looks for such accesses
const sanitizes = process.env["EMULATE_SANITIZED"] === "1";

/**
 * Row-major elements of every output of every case. Throws where a byte beside the outputs and the scratch was written.
 */
export function runEmulated(
  cases: readonly EmulatedCase[],
  alignments: readonly number[] = [256],
): readonly (readonly Values[])[] {
  const laid = cases.map((each, i) => layOut(each, alignments, i));
  const sanitizing = sanitizes ? ["-fsanitize=address", "-DSANITIZED"] : ["-I", headerFolder()];
  const program = programOf(programText(laid), [...sanitizing, "-I", import.meta.dirname]);
  const folder = mkdtempSync(path.join(tmpdir(), "braid-emulated-"));
  try {
    const file = (name: string): string => path.join(folder, name);
    writeFileSync(file("before"), Buffer.concat(laid.map(({ image }) => image)));
    execFileSync(program, [file("before"), file("after")], { stdio: "pipe", timeout: 120_000 });
    const after = readFileSync(file("after"));
    let next = 0;
    return laid.map((each, i) => {
      const bytes = new Uint8Array(after.subarray(next, next + each.image.length));
      next += each.image.length;
      return outputsOf(at(cases, i).kernel, each, bytes);
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Operands start at multiples of `alignments` in turn, from the one at `index`, and of no more, so that narrower accesses
 * are generated too.
 */
function layOut(
  { kernel, inputs, held = [], origins = [] }: EmulatedCase,
  alignments: readonly number[],
  index: number,
): Laid {
  let next = 256;
  const spans: Span[] = [];
  const place = (bytes: number, alignment: number): Span => {
    const start = next + (alignment % 256);
    const span = { start, end: start + bytes };
    next = Math.ceil(span.end / 256) * 256 + 256;
    spans.push(span);
    return span;
  };
  const operands = [...kernel.inputs, ...kernel.outputs];
  const addresses = operands.map((operand, i) => {
    const wanted = at(alignments, (index + i) % alignments.length);
    return place(spanBytes(operand), Math.max(wanted, dtypes[operand.dtype].bytes)).start;
  });
  const operandAddress = (memory: NestMemory): number | null =>
    memory.kind === "scratch"
      ? null
      : at(addresses, memory.position + (memory.kind === "output" ? kernel.inputs.length : 0));
  const { steps, scratchBytes } = kernelSteps(kernel, (memory) => alignmentOf(operandAddress(memory) ?? 64));
  const scratch = place(scratchBytes, 64);
  const addressOf = (memory: NestMemory): number =>
    operandAddress(memory) ?? scratch.start + (memory.kind === "scratch" ? memory.offset : 0);
  const launches = steps.map((step): Launch => {
    if (step.kind === "kernel") {
      const parameters = step.source.parameters.map((parameter) =>
        parameter.kind === "origin" ? `${at(origins, parameter.position)}ll` : pointerText(addressOf(parameter)),
      );
      return { source: step.source, parameters };
    }
    const places = [step.a, step.b, step.bias, step.addend, ...(step.scales ?? []), step.c].filter(
      (place) => place !== null,
    );
    return {
      source: gemmKernel(
        step.contraction,
        places.map(({ memory }) => memory),
        step.addend !== null,
      ),
      parameters: places.map(({ memory, offset }) => pointerText(addressOf(memory) + offset)),
    };
  });
  const image = new Uint8Array(next).fill(guard);
  for (const { start, end } of spans.slice(kernel.inputs.length)) image.fill(unwritten, start, end);
  const given = [...inputs, ...held];
  given.forEach((values, i) => {
    const operand = at(operands, i);
    const { target, first } = elementsAt(operand, image, at(addresses, i));
    offsetsOf(operand).forEach((offset, j) => target.set(first + offset, at(values, j)));
  });
  return { addresses, launches, image, scratch, spans };
}

function pointerText(address: number): string {
  return `Any{memory + ${address}}`;
}

function outputsOf(kernel: Kernel, { addresses, image, scratch }: Laid, bytes: Uint8Array): readonly Values[] {
  const rest = bytes.slice();
  const outputs = kernel.outputs.map((operand, i) => {
    const address = at(addresses, kernel.inputs.length + i);
    const { target, first, size } = elementsAt(operand, bytes, address);
    return offsetsOf(operand).map((offset) => {
      const start = address + offset * size;
      rest.set(image.subarray(start, start + size), start);
      return target.get(first + offset);
    });
  });
  rest.set(image.subarray(scratch.start, scratch.end), scratch.start);
  if (Buffer.compare(rest, image) !== 0)
    throw new Error(`a byte beside the outputs was written: ${JSON.stringify(kernel)}`);
  return outputs;
}

/** Elements of the operand; an address that is no multiple of their size is an offset in a copy's terms. */
function elementsAt({ dtype }: Operand, bytes: Uint8Array, address: number) {
  const size = storageView(dtype, new ArrayBuffer(16)).BYTES_PER_ELEMENT;
  const target = elementsOf(dtype, storageView(dtype, bytes.buffer, 0, Math.floor(bytes.length / size)));
  return { target, first: address / size, size };
}

/** The largest power of two up to 256 that divides the address. */
function alignmentOf(address: number): number {
  let alignment = 256;
  while (address % alignment !== 0) alignment /= 2;
  return alignment;
}

const instructions: readonly (readonly [RegExp, string])[] = [
  [/^extern "C" __device__ void __assertfail.*$/gm, ""],
  [/asm\("max\.NaN\.f32 .*$/gm, "z = emulate_max(x, y);"],
  [/asm\("min\.NaN\.f32 .*$/gm, "z = emulate_min(x, y);"],
  [/asm\("rcp\.approx\.ftz\.f32 .*$/gm, "y = 1.0f / x;"],
  [/asm\("cvt\.f32\.f16 .*$/gm, "y = emulate_half_to_float(x);"],
  [/asm\("cvt\.rn\.f16\.f32 .*$/gm, "y = emulate_float_to_half(x);"],
  [/asm\("cvt\.rn\.bf16\.f32 .*$/gm, "y = emulate_float_to_bfloat16(x);"],
  [/asm\("cvt\.rn\.satfinite\.e4m3x2\.f32 .*$/gm, "y = emulate_float_to_e4m3(x);"],
  [/asm\("cvt\.rn\.satfinite\.e5m2x2\.f32 .*$/gm, "y = emulate_float_to_e5m2(x);"],
  [/asm volatile\("st\.release\.sys\.global\.u32 .*$/gm, "__atomic_store_n(word, 1u, __ATOMIC_RELEASE);"],
  [/asm volatile\("ld\.acquire\.sys\.global\.u32 .*$/gm, "x = emulate_look(word);"],
];

function programText(laid: readonly Laid[]): string {
  const sources: string[] = [];
  const calls: string[] = [];
  for (const [i, { launches, image, spans }] of laid.entries()) {
    for (const [j, { start }] of [...spans, { start: image.length }].entries()) {
      const before = spans[j - 1]?.end ?? 0;
      if (sanitizes) calls.push(`__asan_poison_memory_region(memory + ${before}, ${start - before});`);
    }
    for (const [j, { source, parameters }] of launches.entries()) {
      const space = `case${i}_${j}`;
      const text = instructions.reduce(
        (done, [pattern, replacement]) => done.replaceAll(pattern, replacement),
        source.text,
      );
      // Conversions to 8 bits have one text for Hopper, and another for older GPUs.
      sources.push("#undef __CUDA_ARCH__", `#define __CUDA_ARCH__ ${(i + j) % 2 === 0 ? 900 : 800}`);
      sources.push(`namespace ${space} {\n${text.replaceAll('extern "C" ', "")}}`);
      const [x, y, z] = source.grid;
      const barriers = /__syncthreads|__shfl|__ballot/.test(source.text);
      const call = `${space}::${kernelName}(${parameters.join(", ")});`;
      calls.push(`emulation::launch({${x}, ${y}, ${z}}, ${source.block[0]}, ${barriers}, [=] { ${call} });`);
    }
    if (sanitizes) calls.push(`__asan_unpoison_memory_region(memory, ${image.length});`);
    calls.push(`memory += ${image.length};`);
  }
  return `#include "cuda-on-cpu.hpp"
${sanitizes ? "#include <sanitizer/asan_interface.h>" : ""}
struct Any { char *at; template <class T> operator T *() const { return (T *)at; } };
${sources.join("\n")}
int main(int, char **files) {
  FILE *in = fopen(files[1], "rb");
  fseek(in, 0, SEEK_END);
  const size_t bytes = ftell(in);
  rewind(in);
  char *image = (char *)aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (fread(image, 1, bytes, in) != bytes) return 1;
  char *memory = image;
  ${calls.join("\n  ")}
  FILE *out = fopen(files[2], "wb");
  return fwrite(image, 1, bytes, out) == bytes && fclose(out) == 0 ? 0 : 1;
}
`;
}
