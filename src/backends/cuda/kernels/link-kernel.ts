/**
 * The kernel of a combination over links. It has few thread blocks, which leaves most SMs to the GEMM beside it, and
 * many wide loads in flight per thread, because peers' memory has a high latency. It synchronizes with the peers
 * itself.
 *
 *     8 blocks of 512 threads, each with 16 loads of 16 bytes in flight: 4 vectors of 4 ranks' inputs
 */
import type { Kernel } from "../../../commands/kernel.ts";
import { kernelPhases } from "../../../kernels/kernel-plan.ts";
import { elementwiseBody, vectorsOf } from "./elementwise-kernel.ts";
import { kernelName, type KernelSource } from "./kernel-source.ts";
import { barrierAfter, barrierBefore, barrierParameters, type Barriers } from "./text/barrier-text.ts";
import { groupPhases } from "./plan/nest-groups.ts";
import { kernelOf } from "./text/prelude.ts";
import type { AlignmentOf } from "./plan/vector-width.ts";

const blockThreads = 512;
/**
 * Measured on H200: with 16-byte accesses 8 blocks are as fast as 64. Narrower accesses need more blocks for the same
 * bytes in flight.
 */
const fewBlocks = 8;
const mostBlocks = 64;
const wideBytes = 16;
const loadsPerThread = 16;

/**
 * Null for a kernel that is not one loop over elements. The signals' and waits' parameters follow those of
 * `parameters`.
 */
export function linkKernel(kernel: Kernel, alignmentOf: AlignmentOf, barriers: Barriers): KernelSource | null {
  const [group, ...others] = groupPhases(kernelPhases(kernel).phases);
  if (group?.kind !== "nests" || others.length > 0) return null;
  const { nests } = group;
  const { width, vectors, bytes } = vectorsOf(nests, alignmentOf);
  const wanted = Math.min(mostBlocks, Math.ceil((fewBlocks * wideBytes) / bytes));
  const blocks = Math.max(1, Math.min(wanted, Math.ceil(vectors / blockThreads)));
  const copies = Math.max(1, Math.floor(loadsPerThread / kernel.inputs.length));
  const stride = blocks * blockThreads;
  const most = vectors + stride * copies;
  const { parameters, parameterText, type, lines } = elementwiseBody(nests, { width, vectors, copies, stride, most });
  const all = [parameterText, ...barrierParameters(barriers)].join(", ");
  const text = [
    `extern "C" __global__ void __launch_bounds__(${blockThreads}) ${kernelName}(${all}) {`,
    ...barrierBefore(barriers, blocks, blockThreads),
    `for (${type} first = blockIdx.x * ${blockThreads}u + threadIdx.x; first < ${vectors}u; first += ${stride * copies}u) {`,
    ...lines,
    "}",
    ...barrierAfter(barriers, blocks, blockThreads),
    "}",
  ];
  return kernelOf(text, [blocks, 1, 1], blockThreads, parameters);
}
