/** The names that command lines and files use for an input or output. */
import type { Tensor } from "../../ir/domain.ts";
import { editableName } from "../../ir/tensor-names.ts";

/** The one to write first. */
export function namesOfTensor(tensor: Tensor): readonly string[] {
  return [`T${tensor.id}`, ...[editableName(tensor) ?? []].flat()];
}
