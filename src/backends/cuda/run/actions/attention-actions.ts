/** Kernels of attention as one call of cuDNN, between copies of the operands that it cannot take where they lie. */
import type { AttentionKernel } from "../../../../commands/attention.ts";
import type { Launch } from "../../../../commands/command.ts";
import { at } from "../../../../support/invariant.ts";
import { alignmentOf } from "../../memory/device-memory.ts";
import { type Action, type ActionContext, addressIn } from "./action-context.ts";
import { copyLaunch } from "./copy-actions.ts";

export function attentionActions(kernel: AttentionKernel, launch: Launch, context: ActionContext): readonly Action[] {
  const { session, resources } = context;
  const { stream } = launch;
  const on = context.streamOf(stream);
  const operands = [...kernel.inputs, ...kernel.outputs];
  const own = [...launch.inputs, ...launch.outputs].map(addressIn(context));
  const planned = session.attentions().plan(kernel, own.map(alignmentOf), on);
  const { layout } = planned;
  const scratch = context.scratchOf(stream, layout.copyBytes + planned.scratchBytes);
  const placed = [...layout.inputs, ...layout.outputs];
  const addresses = placed.map(({ copy }, i) => (copy === null ? at(own, i) : scratch + copy.offset));
  /** The copies of the inputs to the scratch, or of the outputs from there. */
  const copies = (isInput: boolean): readonly Action[] =>
    placed.flatMap(({ copy }, i) => {
      if (copy === null || i < kernel.inputs.length !== isInput) return [];
      const inMemory = [at(operands, i), at(own, i)] as const;
      const inScratch = [{ ...at(operands, i), strides: copy.strides }, at(addresses, i)] as const;
      const [from, to] = isInput ? [inMemory, inScratch] : [inScratch, inMemory];
      return [copyLaunch(...from, ...to, on, context)];
    });
  const call = planned.bind(
    {
      operands: addresses,
      scratch: scratch + layout.copyBytes,
      workspace: context.workspaceOf(stream, planned.workspaceBytes),
    },
    resources,
  );
  return [...copies(true), call, ...copies(false)];
}
