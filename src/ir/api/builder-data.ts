/** The state behind a Fusion to immutable data, and back. */
import type { FusionData } from "../fusion-data.ts";
import { leavesOf } from "../scalar/scalar.ts";
import { createFusionBuilder, type FusionBuilder, resolveMarks } from "./fusion-builder.ts";

/** The Fusion as immutable data. Returns the same object until the next change. */
export function snapshotFusion(builder: FusionBuilder): FusionData {
  if (builder.snapshot !== null) return builder.snapshot;
  resolveMarks(builder);
  builder.snapshot = {
    kind: "Fusion",
    tensors: [...builder.tensors],
    ops: [...builder.ops],
    inputs: [...builder.inputs],
    outputs: [...builder.outputs],
    iterDomainCount: builder.iterDomainCount,
    scalarCount: builder.scalarCount,
    ...(builder.markers.length === 0 ? {} : { markers: [...builder.markers] }),
    ...(builder.derivations.length === 0 ? {} : { derivations: [...builder.derivations] }),
  };
  return builder.snapshot;
}

/** A state with the Fusion's tables, to which ops can be appended. */
export function builderFrom(fusion: FusionData): FusionBuilder {
  const builder = createFusionBuilder();
  growTo(builder, fusion);
  return builder;
}

/** Appends what `fusion`, which begins with the tables of the state, has more. */
export function growTo(builder: FusionBuilder, fusion: FusionData): void {
  for (const tensor of fusion.tensors.slice(builder.tensors.length)) {
    builder.tensors.push(tensor);
    for (const { extent } of tensor.domain.logical) for (const leaf of leavesOf(extent)) builder.symbols.add(leaf);
    if (tensor.origin?.name !== undefined) builder.names.set(tensor.origin.name, tensor.id);
  }
  for (const op of fusion.ops.slice(builder.ops.length)) builder.ops.push(op);
  for (const id of fusion.inputs.slice(builder.inputs.length)) builder.inputs.push(id);
  for (const id of fusion.outputs.slice(builder.outputs.length)) builder.outputs.push(id);
  for (const marker of (fusion.markers ?? []).slice(builder.markers.length)) builder.markers.push(marker);
  builder.derivations.push(...(fusion.derivations ?? []).slice(builder.derivations.length));
  builder.iterDomainCount = fusion.iterDomainCount;
  builder.scalarCount = fusion.scalarCount;
  builder.snapshot = null;
}
