/**
 * Makes every Stream axis Serial if the option `overlap` is off. No op then becomes a loop over streams: communication
 * and computation run one after the other.
 */
import type { Pass } from "../pass.ts";
import { reparallelize } from "../edit/tensor-edit.ts";

export const ignoreStreamAxes: Pass<"fusion", "checked"> = {
  name: "ignore-stream-axes",
  from: "fusion",
  to: "checked",
  run: (fusion, { options }) => {
    if (options.overlap) return fusion;
    const tensors = fusion.tensors.map((tensor) =>
      reparallelize(tensor, ({ parallelType }) => (parallelType === "Stream" ? "Serial" : parallelType)),
    );
    return tensors.every((tensor, i) => tensor === fusion.tensors[i]) ? fusion : { ...fusion, tensors };
  },
};
