/**
 * Makes every Stream axis Serial if the option `overlap` is off. No op then becomes a loop over streams: communication
 * and computation run one after the other.
 */
import type { IterDomain } from "../../ir/domain.ts";
import type { Pass } from "../pass.ts";
import { withSerialStream } from "../edit/tensor-edit.ts";

export const ignoreStreamAxes: Pass<"fusion", "checked"> = {
  name: "ignore-stream-axes",
  from: "fusion",
  to: "checked",
  run: (fusion, { options }) => {
    if (options.overlap) return fusion;
    if (!fusion.tensors.some(({ domain }) => hasStream(domain.logical) || hasStream(domain.loop))) return fusion;
    return { ...fusion, tensors: fusion.tensors.map(withSerialStream) };
  },
};

function hasStream(axes: readonly IterDomain[]): boolean {
  for (const { parallelType } of axes) if (parallelType === "Stream") return true;
  return false;
}
