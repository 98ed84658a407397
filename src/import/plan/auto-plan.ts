/** `--plan auto`: the plans of model families. */
import type { Size } from "../torch-export/graph.ts";
import type { ExportedProgram } from "../torch-export/read.ts";
import { type GraphFacts, graphFacts, packedParts } from "./model-facts.ts";
import { invalidPlan, patternOf, type ShardingPlan, type StyleLine } from "./parse-plan.ts";
import { type Style, styles } from "./styles.ts";

/**
 * The plan of the model's family. What a weight is not packed of, such as the query heads and the one head of keys and
 * values, is gathered. Throws `sharding-plan-invalid` for a model of no family.
 */
export function autoPlan({ graph }: ExportedProgram, devices: number, fewestElements = fewestOnDevice): ShardingPlan {
  const facts = graphFacts(graph);
  const { modules, parameterValues } = facts;
  const found = Object.values(families).map((lines) =>
    Object.entries(lines).flatMap(([pattern, style]): StyleLine[] => {
      const paths = [...modules.keys()].filter((path) => patternOf(pattern).test(path));
      if (paths.length > 0) {
        const isPacked = paths.every((path) => packedParts(facts, facts.valuesOf(path)) !== null);
        return [{ key: pattern, pattern, style: !styles[style].packed || isPacked ? style : "colwise_gather_output" }];
      }
      return [...parameterValues.keys()].some((name) => patternOf(pattern).test(name))
        ? [{ key: pattern, pattern, style }]
        : [];
    }),
  );
  const best = found.reduce((most, lines) => (lines.length > most.length ? lines : most));
  if (best.length < 3) {
    return invalidPlan("--plan auto", "", {
      message: "the model is of no family that Braid has a plan for",
      found: `modules such as ${[...modules.keys()].slice(-3).join(", ")}`,
      expected: `the module names of ${Object.keys(families).join(", ")}`,
      help: 'write a plan: { "mesh": { "tp": 4 }, "NAME": "colwise" }, as docs/import-pytorch.md says',
    });
  }
  const none = { parameters: [], inputs: [], outputs: [], activations: [], stream: [], fp8: null, groups: {} };
  return {
    path: "--plan auto",
    mesh: { tp: devices },
    modules: [...best, ...sequenceLines(facts, best, devices, fewestElements)],
    ...none,
  };
}

/**
 * Of the results of a layer, on one device. Layers of Llama-3 8B are predicted to be as fast either way with 1,024
 * tokens on 2 x H200, and with some 1,600 on 4.
 */
const fewestOnDevice = 2 ** 21;

/**
 * What norms return, cut along the tokens: sequence parallelism (Korthikanti et al., 2022). A sum over devices is then a
 * reduce-scatter, and what follows the norm gathers: as many bytes as an all-reduce, which loops hide beside the GEMMs
 * before and after. None if the devices do not divide the tokens of all that is summed, if their number is open, or if a
 * device has few of them: two collectives take longer than one then. None for experts, whose tokens move anyway.
 */
function sequenceLines(
  facts: GraphFacts,
  lines: readonly StyleLine[],
  devices: number,
  fewestElements: number,
): readonly StyleLine[] {
  const { graph, modules } = facts;
  const sizesOf = (value: string): readonly Size[] => graph.tensors.get(value)?.sizes ?? [];
  const summed = lines.flatMap(({ pattern, style }) =>
    styles[style].cut === "in"
      ? [...modules.keys()]
          .filter((path) => patternOf(pattern).test(path))
          .flatMap(facts.valuesOf)
          .map(sizesOf)
      : [],
  );
  const isCut = summed.every((sizes) => sizes.length === 3 && Number(sizes[1]) % devices === 0);
  const elements = summed.map((sizes) => sizes.reduce<number>((product, size) => product * Number(size), 1));
  const hasExperts = lines.some(({ pattern }) => pattern.includes("experts."));
  if (!isCut || hasExperts || Math.max(...elements) / devices < fewestElements) return [];
  const shapes = new Set(summed.map((sizes) => JSON.stringify(sizes)));
  const norms = [...normsIn(facts)].filter((path) => {
    const values = facts.valuesOf(path);
    return values.length > 0 && values.every((value) => shapes.has(JSON.stringify(sizesOf(value))));
  });
  const patterns = new Set(norms.map((path) => path.replaceAll(/(?<=\.|^)\d+(?=\.|$)/gu, "*")));
  return [...patterns].map((pattern) => ({ key: pattern, pattern, style: "sequence_parallel" }));
}

/** The modules that are LayerNorm, RMSNorm and the like, by their types. */
function normsIn({ graph }: GraphFacts): ReadonlySet<string> {
  const inner = graph.nodes.flatMap(({ modules }) => modules.slice(-1));
  return new Set(inner.flatMap(({ path, type }) => (/norm$/iu.test(type) ? [path] : [])));
}

type Lines = Readonly<Record<string, Style>>;

/** Of two linear maps, one after the other. */
const pair = (first: string, second: string): Lines => ({ [first]: "colwise", [second]: "rowwise" });

const attention = (path: string): Lines => ({
  [`${path}.q_proj`]: "colwise",
  [`${path}.k_proj`]: "colwise",
  [`${path}.v_proj`]: "colwise",
  [`${path}.o_proj`]: "rowwise",
  [`${path}.out_proj`]: "rowwise",
});

const gated = (path: string): Lines => ({
  ...pair(`${path}.gate_proj`, `${path}.down_proj`),
  [`${path}.up_proj`]: "colwise",
});

/** The weights of all experts are a parameter of three axes. */
const experts = (path: string): Lines => ({
  [`${path}.gate_up_proj`]: "packed_colwise",
  [`${path}.up_proj`]: "colwise",
  [`${path}.down_proj`]: "rowwise",
});

/** `attention`: the module of the projections. */
function encoder(attention: string): Lines {
  const own = `layer.*.attention.${attention}`;
  return {
    [`${own}.query`]: "colwise",
    [`${own}.key`]: "colwise",
    [`${own}.value`]: "colwise",
    "layer.*.attention.output.dense": "rowwise",
    "layer.*.intermediate.dense": "colwise",
    "layer.*.output.dense": "rowwise",
  };
}

const head: Lines = { lm_head: "colwise_gather_output" };

/**
 * The plans of model families by the names of their modules, as the configurations of Hugging Face's transformers have
 * them (base_model_tp_plan), for `--plan auto`.
 */
export const families: Readonly<Record<string, Lines>> = {
  "llama, qwen, mistral, gemma, mixtral, deepseek": {
    ...attention("layers.*.self_attn"),
    ...attention("layers.*.encoder_attn"),
    ...attention("layers.*.attention"),
    ...attention("layer.*.attention"),
    "layers.*.self_attn.dense": "rowwise",
    "layers.*.self_attn.q_b_proj": "colwise",
    "layers.*.self_attn.kv_b_proj": "colwise",
    ...gated("layers.*.mlp"),
    ...gated("layers.*.feed_forward"),
    ...gated("layers.*.mlp.shared_expert"),
    ...gated("layers.*.mlp.shared_experts"),
    ...experts("layers.*.mlp.experts"),
    ...experts("layers.*.block_sparse_moe.experts"),
    ...pair("layers.*.mlp.fc1", "layers.*.mlp.fc2"),
    ...pair("layer.*.mlp.fc1", "layer.*.mlp.fc2"),
    ...pair("layer.*.mlp.up_proj", "layer.*.mlp.down_proj"),
    ...pair("layers.*.fc1", "layers.*.fc2"),
    ...pair("layers.*.feed_forward.intermediate_dense", "layers.*.feed_forward.output_dense"),
    ...pair("layers.*.mlp.c_fc", "layers.*.mlp.c_proj"),
    ...head,
  },
  // Weights of experts are [E, in, out], and columns of gate and up alternate.
  gpt_oss: {
    ...attention("layers.*.self_attn"),
    "layers.*.self_attn.sinks": "colwise",
    "layers.*.mlp.experts.gate_up_proj": "rowwise",
    "layers.*.mlp.experts.gate_up_proj_bias": "rowwise",
    "layers.*.mlp.experts.down_proj": "colwise",
    ...head,
  },
  phi3: {
    "layers.*.self_attn.qkv_proj": "colwise_gather_output",
    "layers.*.self_attn.o_proj": "rowwise_split_input",
    "layers.*.mlp.gate_up_proj": "packed_colwise",
    "layers.*.mlp.down_proj": "rowwise",
    ...head,
  },
  gpt2: {
    "h.*.attn.c_attn": "packed_colwise",
    "h.*.attn.c_proj": "rowwise",
    ...pair("h.*.mlp.c_fc", "h.*.mlp.c_proj"),
    ...head,
  },
  "gpt_neo, gptj": {
    ...attention("h.*.attn.attention"),
    ...attention("h.*.attn"),
    ...pair("h.*.mlp.c_fc", "h.*.mlp.c_proj"),
    ...pair("h.*.mlp.fc_in", "h.*.mlp.fc_out"),
    ...head,
  },
  // Queries, keys and values of one head stand together.
  "gpt_neox, bloom": {
    ...pair("layers.*.attention.query_key_value", "layers.*.attention.dense"),
    ...pair("layers.*.self_attn.query_key_value", "layers.*.self_attn.dense"),
    ...pair("h.*.self_attention.query_key_value", "h.*.self_attention.dense"),
    ...pair("layers.*.mlp.dense_h_to_4h", "layers.*.mlp.dense_4h_to_h"),
    ...pair("h.*.mlp.dense_h_to_4h", "h.*.mlp.dense_4h_to_h"),
    ...head,
  },
  mpt: {
    "blocks.*.attn.Wqkv": "packed_colwise",
    "blocks.*.attn.out_proj": "rowwise",
    ...pair("blocks.*.ffn.up_proj", "blocks.*.ffn.down_proj"),
    ...head,
  },
  t5: {
    "layer.*.SelfAttention.q": "colwise",
    "layer.*.SelfAttention.k": "colwise",
    "layer.*.SelfAttention.v": "colwise",
    "layer.*.SelfAttention.o": "rowwise",
    "layer.*.EncDecAttention.q": "colwise",
    "layer.*.EncDecAttention.k": "colwise",
    "layer.*.EncDecAttention.v": "colwise",
    "layer.*.EncDecAttention.o": "rowwise",
    "layer.*.DenseReluDense.wi_0": "colwise",
    "layer.*.DenseReluDense.wi_1": "colwise",
    ...pair("layer.*.DenseReluDense.wi", "layer.*.DenseReluDense.wo"),
    ...head,
  },
  modernbert: {
    "layers.*.attn.Wqkv": "packed_colwise",
    "layers.*.attn.Wo": "rowwise",
    "layers.*.mlp.Wi": "packed_colwise",
    "layers.*.mlp.Wo": "rowwise",
  },
  distilbert: {
    "layer.*.attention.q_lin": "colwise",
    "layer.*.attention.k_lin": "colwise",
    "layer.*.attention.v_lin": "colwise",
    "layer.*.attention.out_lin": "rowwise",
    ...pair("layer.*.ffn.lin1", "layer.*.ffn.lin2"),
  },
  bert: encoder("self"),
  vit: encoder("attention"),
};
