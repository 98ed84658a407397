/**
 * Takes the DID types of mesh dimensions of one device off all axes, with the splits that they stand on: such a dimension
 * cuts nothing, so that nothing has to move along it. On its tensors, Stream with one chunk goes too, as of a loop over
 * these devices. Both stay with nvFuser's limits, and on a mesh of one device, where nvFuser's programs are lowered
 * statement by statement.
 *
 *   DeviceMesh.ofShape([1, 8]): T0[DIDy 1, 4 | DIDx 8, 2]   ->   T0[4 | DIDx 8, 2]
 */
import { isDID, type IterDomain, type Tensor } from "../../ir/domain.ts";
import { cutOf, type Part, withoutUnitParts } from "../../ir/parts.ts";
import { isConstant } from "../../ir/scalar/fold.ts";
import { editFusion, recut, type TensorEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";

export const ignoreUnitDimensions: Pass<"fusion", "fusion"> = {
  name: "ignore-unit-dimensions",
  from: "fusion",
  to: "fusion",
  run: (fusion, { options }) => {
    if (options.nvfuserLimits) return fusion;
    const edit = editFusion(fusion);
    const tensors = fusion.tensors.map((tensor) => withoutUnits(edit, tensor));
    const isSame = tensors.every((tensor, id) => tensor === fusion.tensors[id]);
    return isSame ? fusion : { ...fusion, tensors, iterDomainCount: edit.iterDomainCount };
  },
};

function withoutUnits(edit: TensorEdit, tensor: Tensor): Tensor {
  const { mesh } = tensor;
  if (mesh === null || mesh.devices.length === 1 || !mesh.shape.includes(1)) return tensor;
  const isUnit = ({ parallelType: type, extent }: Pick<IterDomain, "parallelType" | "extent">): boolean =>
    isDID(type) ? mesh.hasAxis(type) && mesh.size(type) === 1 : type === "Stream" && isConstant(extent, 1);
  if (!tensor.domain.loop.some(isUnit)) return tensor;
  const isDropped = ({ type, extent }: Part): boolean => isUnit({ parallelType: type, extent });
  let { domain } = tensor;
  for (const axis of tensor.domain.logical) {
    const cut = cutOf(domain, axis);
    if (!cut.parts.some(isDropped)) continue;
    // An order of memory that lists the parts keeps them.
    domain = recut(edit, domain, axis, withoutUnitParts(cut, isDropped)) ?? domain;
  }
  return domain === tensor.domain ? tensor : { ...tensor, domain };
}
