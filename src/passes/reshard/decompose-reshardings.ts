/**
 * Puts every change of sharding into an op of its own that a communication can carry: what devices reduce together is split into what
 * each reduces alone and a reduction over the devices, other ops that reshard get a Set in front or behind, and what no one
 * communication carries goes in steps.
 *
 *   T2[Stream, _, _, _] = matmul(T0[_, DIDx, _, _], T1)
 * becomes
 *   T3[Stream, _, _, _] = set(T0[_, DIDx, _, _])
 *   T2[Stream, _, _, _] = matmul(T3, T1)
 *
 * Before that contractions take in the permutes of their operands, so that what is moved is a tensor as it lies (fold-permutes.ts).
 * Source: nvFuser's DecomposeReshardings.
 */
import { foldContractions } from "../prepare/fold-permutes.ts";
import { insertSetsAfter, insertSetsBefore } from "./insert-resharding-sets-before.ts";
import { splitPartialReductions } from "./split-partial-reductions.ts";
import type { Pass } from "../pass.ts";
import { inSingleSteps } from "./split-reshardings.ts";

export const decomposeReshardings: Pass<"fusion", "fusion"> = {
  name: "decompose-reshardings",
  from: "fusion",
  to: "fusion",
  run: (fusion, { options }) => {
    const folded = foldContractions(fusion, options);
    const after = insertSetsAfter(splitPartialReductions(folded), options.insertReshardingAfter);
    return inSingleSteps(insertSetsBefore(after));
  },
};
