/** Copies of strided boxes as calls: by the copy engines or by a kernel, as copy-plan.ts chooses. */
import type { Command } from "../../../../commands/command.ts";
import type { View } from "../../../../commands/view.ts";
import { copyKernel } from "../../kernels/plan/kernel-steps.ts";
import { pullKernel } from "../../kernels/pull-kernel.ts";
import { alignmentOf } from "../../memory/alignment.ts";
import { type Action, type ActionContext, addressIn, checked } from "./action-context.ts";
import { planCopy } from "./copy-plan.ts";
import { encodePlaneCopy } from "./plane-copy.ts";

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
  source: View,
  from: number,
  destination: View,
  to: number,
  stream: number,
  context: ActionContext,
): Action {
  const { modules } = context.session;
  const kernel = copyKernel(source, destination, ({ kind }) => alignmentOf(kind === "input" ? from : to));
  const pointers = kernel.parameters.map(({ kind }) => (kind === "input" ? from : to));
  return modules.prepareLaunch(kernel, pointers, stream, context.blocks);
}
