/**
 * The kernel of a copy over a link that is too small to be worth starting a copy engine. It has few thread blocks,
 * which leaves most SMs to the GEMM beside it, and many wide loads in flight per thread, because peers' memory has a
 * high latency.
 *
 *     16 blocks of 512 threads with 8 loads of 16 bytes each: 1 MiB in flight
 */
import { indented } from "./kernel-source.ts";
import { kernelName, type KernelSource } from "./kernel-source.ts";

const blockThreads = 512;
const mostBlocks = 16;
const loadsPerThread = 8;

/** Keyed by the bytes of one access. */
const words = [
  { bytes: 16, type: "uint4" },
  { bytes: 8, type: "uint2" },
  { bytes: 4, type: "unsigned" },
  { bytes: 2, type: "unsigned short" },
] as const;
const byteWord = { bytes: 1, type: "unsigned char" } as const;

/**
 * Copies `bytes` contiguous bytes, at least 1, from input 0 to output 0. Both addresses are multiples of `alignment`.
 */
export function pullKernel(bytes: number, alignment: number): KernelSource {
  const word = words.find((each) => alignment % each.bytes === 0) ?? byteWord;
  const count = Math.floor(bytes / word.bytes);
  const rest = bytes - count * word.bytes;
  const blocks = Math.max(1, Math.min(mostBlocks, Math.ceil(count / (blockThreads * loadsPerThread))));
  const threads = blocks * blockThreads;
  // The counter must not wrap from 2^32 words on. Below, the shorter type is faster.
  const type = count + threads * loadsPerThread < 2 ** 32 ? "unsigned" : "unsigned long long";
  const each = (line: string): readonly string[] => [
    "#pragma unroll",
    `for (int u = 0; u < ${loadsPerThread}; u++) {`,
    `const ${type} t = base + u * ${threads}u;`,
    `if (t < ${count}u) ${line}`,
    "}",
  ];
  const tail = [
    `if (first < ${rest}u) {`,
    `((unsigned char *)(output0 + ${count}u))[first] = ((const unsigned char *)(input0 + ${count}u))[first];`,
    "}",
  ];
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(const ${word.type} *input0, ${word.type} *output0) {`,
    `const unsigned first = blockIdx.x * ${blockThreads}u + threadIdx.x;`,
    `for (${type} base = first; base < ${count}u; base += ${threads * loadsPerThread}u) {`,
    `${word.type} held[${loadsPerThread}];`,
    ...each("held[u] = input0[t];"),
    ...each("output0[t] = held[u];"),
    "}",
    ...(rest === 0 ? [] : tail),
    "}",
  ];
  return {
    text: `${indented(text)}\n`,
    grid: [blocks, 1, 1],
    block: [blockThreads, 1, 1],
    parameters: [
      { kind: "input", position: 0 },
      { kind: "output", position: 0 },
    ],
  };
}
