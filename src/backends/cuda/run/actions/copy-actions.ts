/** Copies of strided boxes as calls: by the copy engines or by a kernel, as copy-plan.ts chooses. */
import type { Command } from "../../../../commands/command.ts";
import type { Operand } from "../../../../commands/kernel.ts";
import { copyKernel } from "../../kernels/plan/kernel-steps.ts";
import { pullKernel } from "../../kernels/pull-kernel.ts";
import { alignmentOf } from "../../memory/device-memory.ts";
import { type Action, type ActionContext, addressIn, checked } from "./action-context.ts";
import { planCopy } from "./copy-plan.ts";
import { CU_MEMORYTYPE_DEVICE, CUDA_MEMCPY2D_SIZE } from "../../bindings/driver-api.ts";
import type { HostBlocks } from "../../memory/host-blocks.ts";

/** `crossesLink`: one side is in a peer's memory. */
export function copyActions(
  { source, destination, engine, stream }: Extract<Command, { readonly kind: "copy" }>,
  crossesLink: boolean,
  context: ActionContext,
): readonly Action[] {
  const plan = planCopy(source, destination, crossesLink, engine);
  const addressOf = addressIn(context);
  const [from, to] = [addressOf(source), addressOf(destination)];
  const on = context.streamOf(stream);
  switch (plan.kind) {
    case "none":
      return [];
    case "run": {
      const { bytes } = plan;
      return [checked(context, "cuMemcpyDtoDAsync", (raw) => () => raw.cuMemcpyDtoDAsync_v2(to, from, bytes, on))];
    }
    case "planes":
      return plan.offsets.map((offset) => {
        const { width, height, pitch } = plan;
        const copy = encodePlaneCopy(
          {
            source: from + offset.source,
            sourcePitch: pitch.source,
            destination: to + offset.destination,
            destinationPitch: pitch.destination,
            width,
            height,
          },
          context.blocks,
        );
        return checked(context, "cuMemcpy2DAsync", (raw) => () => raw.cuMemcpy2DAsync_v2(copy, on));
      });
    case "pull": {
      const kernel = pullKernel(plan.bytes, Math.min(alignmentOf(from), alignmentOf(to)));
      return [context.session.modules.prepareLaunch(kernel, [from, to], on, context.blocks)];
    }
    case "kernel":
      return [copyLaunch(source, from, destination, to, on, context)];
  }
}

/** The launch of a kernel that copies the box between these addresses. */
export function copyLaunch(
  source: Operand,
  from: number,
  destination: Operand,
  to: number,
  stream: number,
  context: ActionContext,
): Action {
  const { modules } = context.session;
  const kernel = copyKernel(source, destination, ({ kind }) => alignmentOf(kind === "input" ? from : to));
  const pointers = kernel.parameters.map(({ kind }) => (kind === "input" ? from : to));
  return modules.prepareLaunch(kernel, pointers, stream, context.blocks);
}

/** The bytes of a CUDA_MEMCPY2D between device addresses, as cuda.h lays it out. */
interface PlaneCopy {
  readonly source: number;
  readonly sourcePitch: number;
  readonly destination: number;
  readonly destinationPitch: number;
  /** In bytes. */
  readonly width: number;
  readonly height: number;
}

/** The address of the struct, for cuMemcpy2DAsync. */
function encodePlaneCopy(copy: PlaneCopy, blocks: HostBlocks): number {
  const { address, view } = blocks.take(CUDA_MEMCPY2D_SIZE);
  writePlaneCopy(view, copy);
  return address;
}

/**
 * srcMemoryType at 16, srcDevice at 32, srcPitch at 48; dst the same from 56 on; WidthInBytes at 112, Height at 120.
 */
export function writePlaneCopy(view: DataView, copy: PlaneCopy): void {
  const side = (start: number, address: number, pitch: number): void => {
    view.setUint32(start + 16, CU_MEMORYTYPE_DEVICE, true);
    view.setBigUint64(start + 32, BigInt(address), true);
    view.setBigUint64(start + 48, BigInt(pitch), true);
  };
  side(0, copy.source, copy.sourcePitch);
  side(56, copy.destination, copy.destinationPitch);
  view.setBigUint64(112, BigInt(copy.width), true);
  view.setBigUint64(120, BigInt(copy.height), true);
}
