/** This rank's part of a transfer, as the NCCL calls of its plan. */
import type { CommandStreamId } from "../../../../commands/command.ts";
import type { Collective } from "../../../../commands/transfer.ts";
import { at, invariant } from "../../../../support/invariant.ts";
import { identityKernel } from "../../kernels/plan/kernel-steps.ts";
import { alignmentOf } from "../../memory/alignment.ts";
import { transferActions } from "../../nccl/transfer-actions.ts";
import { planCollective, planGroup } from "../../nccl/transfer-plan.ts";
import type { TransferPlan } from "../../nccl/plan-builder.ts";
import { type Action, type ActionContext, addressIn } from "./action-context.ts";
import { copyLaunch } from "./copy-actions.ts";

/** `name` is the communicator's, `index` the command's. */
export function transferActionsOf(
  name: string,
  stream: CommandStreamId,
  index: number,
  context: ActionContext,
): readonly Action[] {
  const { session, communicators, blocks, inProgress } = context;
  const communicator = communicators.get(name);
  invariant(communicator !== undefined, "the communicator of a transfer is open", { name });
  const plan = planOf(index, context);
  const on = context.streamOf(stream);
  return transferActions(plan, {
    communicator,
    communicators: session.communicators(),
    stream: on,
    scratch: context.scratchOf(stream, plan.scratchBytes),
    addressOf: addressIn(context),
    copy: (source, from, destination, to) => copyLaunch(source, from, destination, to, on, context),
    fillIdentity: (op, dtype, count, to) => {
      const kernel = identityKernel(op, dtype, count, () => alignmentOf(to));
      return session.modules.prepareLaunch(kernel, [to], on, blocks);
    },
    inProgress,
  });
}

function planOf(index: number, { program, rank }: ActionContext): TransferPlan {
  const own = at(program.ranks, rank);
  const id = own.transferOf[index] ?? null;
  invariant(id !== null, "a transfer was matched", { rank, index });
  const { participants } = at(program.transfers, id);
  const operations = participants.map(({ operation }) => operation);
  const position = participants.findIndex((member) => member.rank === rank && member.command === index);
  const operation = at(operations, position);
  if (operation.kind === "group") return planGroup(operation);
  const collectives = operations.filter((each): each is Collective => each.kind === "collective");
  return planCollective(collectives, position);
}
