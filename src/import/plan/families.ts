/**
 * The plans of model families by the names of their modules, as the configurations of Hugging Face's transformers have
 * them (base_model_tp_plan), for `--plan auto`.
 */
import type { Style } from "./styles.ts";

type Lines = Readonly<Record<string, Style>>;

const separateProjections: Lines = {
  "layers.*.self_attn.q_proj": "colwise",
  "layers.*.self_attn.k_proj": "colwise",
  "layers.*.self_attn.v_proj": "colwise",
};

const head: Lines = { lm_head: "colwise_gather_output" };

export const families: Readonly<Record<string, Lines>> = {
  "llama, qwen, mistral, gemma": {
    ...separateProjections,
    "layers.*.self_attn.o_proj": "rowwise",
    "layers.*.mlp.gate_proj": "colwise",
    "layers.*.mlp.up_proj": "colwise",
    "layers.*.mlp.down_proj": "rowwise",
    ...head,
  },
  phi3: {
    "layers.*.self_attn.qkv_proj": "colwise_gather_output",
    "layers.*.self_attn.o_proj": "rowwise_split_input",
    "layers.*.mlp.gate_up_proj": "packed_colwise",
    "layers.*.mlp.down_proj": "rowwise",
    ...head,
  },
  phi: {
    ...separateProjections,
    "layers.*.self_attn.dense": "rowwise",
    "layers.*.mlp.fc1": "colwise",
    "layers.*.mlp.fc2": "rowwise",
    ...head,
  },
  gpt2: {
    "h.*.attn.c_attn": "packed_colwise",
    "h.*.attn.c_proj": "rowwise",
    "h.*.mlp.c_fc": "colwise",
    "h.*.mlp.c_proj": "rowwise",
    ...head,
  },
  opt: {
    ...separateProjections,
    "layers.*.self_attn.out_proj": "rowwise",
    "layers.*.fc1": "colwise",
    "layers.*.fc2": "rowwise",
    ...head,
  },
  bert: {
    "layer.*.attention.self.query": "colwise",
    "layer.*.attention.self.key": "colwise",
    "layer.*.attention.self.value": "colwise",
    "layer.*.attention.output.dense": "rowwise",
    "layer.*.intermediate.dense": "colwise",
    "layer.*.output.dense": "rowwise",
  },
  vit: {
    "layer.*.attention.attention.query": "colwise",
    "layer.*.attention.attention.key": "colwise",
    "layer.*.attention.attention.value": "colwise",
    "layer.*.attention.output.dense": "rowwise",
    "layer.*.intermediate.dense": "colwise",
    "layer.*.output.dense": "rowwise",
  },
};
