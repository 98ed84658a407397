/** nvFuser's Fusion IR (`%kernel { .. }`), which prints the math of a definition with its multidevice schedule. */
import { parseFusion } from "../host/parse/fusion-text.ts";
import { Fusion } from "../ir/api/fusion.ts";
import type { ImportedModel, ImportOptions } from "./model.ts";
import { withSourceOrigins } from "./origins.ts";
import { devicesOfMeshes } from "./fusion-definition/import-fusion-definition.ts";

/** Throws `dump-syntax`, `dump-unsupported`, `dump-contradiction`. */
export function importFusionIr(text: string, { file = "model" }: ImportOptions = {}): ImportedModel {
  const source = { file, text, firstLine: 1, prefixLength: 0, lines: null };
  const { fusion: data, positions: made } = parseFusion(source);
  const positions = [...data.inputs.map(() => 0), ...made];
  const fusion = new Fusion(data);
  const [inputs, outputs] = [fusion.inputs.map((_, i) => `in${i}`), fusion.outputs.map((_, i) => `out${i}`)];
  return {
    fusion: withSourceOrigins({ source, fusion, positions }, [
      ...fusion.inputs.map((tensor, i) => [tensor, inputs[i] ?? ""] as const),
      ...fusion.outputs.map((tensor, i) => [tensor, outputs[i] ?? ""] as const),
    ]),
    devices: devicesOfMeshes(fusion),
    inputs: inputs.map((name) => ({ names: [name], value: null })),
    outputs,
  };
}
