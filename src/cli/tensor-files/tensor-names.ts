/** The names that command lines and files use for an input or output. */
import type { Tensor } from "../../ir/domain.ts";

/** The one to write first. */
export function namesOfTensor({ id }: Tensor): readonly string[] {
  return [`T${id}`];
}
