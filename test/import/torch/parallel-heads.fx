[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] TRACED GRAPH
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]  ===== __compiled_fn_1_c028426d_9982_475e_b7e0_f3958bebf7c5 =====
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]  torch/fx/_lazy_graph_module.py class GraphModule(torch.nn.Module):
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]     def forward(self, L_self_modules_table_parameters_weight_: "f32[10, 16][16, 1]cpu", L_tokens_: "i64[2, 6][6, 1]cpu", L_self_modules_qkv_parameters_weight_: "f32[24, 16][16, 1]cpu", L_self_modules_o_parameters_weight_: "f32[16, 8][8, 1]cpu"):
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         l_self_modules_table_parameters_weight_ = L_self_modules_table_parameters_weight_
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         l_tokens_ = L_tokens_
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         l_self_modules_qkv_parameters_weight_ = L_self_modules_qkv_parameters_weight_
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         l_self_modules_o_parameters_weight_ = L_self_modules_o_parameters_weight_
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:49 in forward, code: x = fc.all_reduce(self.table(tokens), "sum", dist.group.WORLD)
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         embedding: "f32[2, 6, 16][96, 16, 1]cpu" = torch.nn.functional.embedding(l_tokens_, l_self_modules_table_parameters_weight_, None, None, 2.0, False, False);  l_tokens_ = l_self_modules_table_parameters_weight_ = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:179 in all_reduce, code: tensor = torch.ops._c10d_functional.all_reduce(
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         tensor: "f32[2, 6, 16][96, 16, 1]cpu" = torch.ops._c10d_functional.all_reduce(embedding, 'sum', '0');  embedding = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:142 in wait_tensor, code: return torch.ops._c10d_functional.wait_tensor(tensor)  # type: ignore[attr-defined]
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         x: "f32[2, 6, 16][96, 16, 1]cpu" = torch.ops._c10d_functional.wait_tensor(tensor);  tensor = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:51 in forward, code: q, k, v = (each.view(b, t, self.heads, 4).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         linear: "f32[2, 6, 24][144, 24, 1]cpu" = torch._C._nn.linear(x, l_self_modules_qkv_parameters_weight_, None);  l_self_modules_qkv_parameters_weight_ = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         chunk = linear.chunk(3, -1);  linear = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         each: "f32[2, 6, 8][144, 24, 1]cpu" = chunk[0]
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         each_1: "f32[2, 6, 8][144, 24, 1]cpu" = chunk[1]
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         each_2: "f32[2, 6, 8][144, 24, 1]cpu" = chunk[2];  chunk = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:51 in <genexpr>, code: q, k, v = (each.view(b, t, self.heads, 4).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         view: "f32[2, 6, 2, 4][144, 24, 4, 1]cpu" = each.view(2, 6, 2, 4);  each = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         q: "f32[2, 2, 6, 4][144, 4, 24, 1]cpu" = view.transpose(1, 2);  view = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         view_1: "f32[2, 6, 2, 4][144, 24, 4, 1]cpu" = each_1.view(2, 6, 2, 4);  each_1 = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         k: "f32[2, 2, 6, 4][144, 4, 24, 1]cpu" = view_1.transpose(1, 2);  view_1 = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         view_2: "f32[2, 6, 2, 4][144, 24, 4, 1]cpu" = each_2.view(2, 6, 2, 4);  each_2 = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         v: "f32[2, 2, 6, 4][144, 4, 24, 1]cpu" = view_2.transpose(1, 2);  view_2 = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:52 in forward, code: y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1)
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         scaled_dot_product_attention: "f32[2, 2, 6, 4][48, 4, 8, 1]cpu" = torch._C._nn.scaled_dot_product_attention(q, k, v, is_causal = True);  q = k = v = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         transpose_3: "f32[2, 6, 2, 4][48, 8, 4, 1]cpu" = scaled_dot_product_attention.transpose(1, 2);  scaled_dot_product_attention = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         y: "f32[2, 6, 8][48, 8, 1]cpu" = transpose_3.reshape(2, 6, -1);  transpose_3 = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:53 in forward, code: return x + fc.all_reduce(self.o(y), "sum", dist.group.WORLD)
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         linear_1: "f32[2, 6, 16][96, 16, 1]cpu" = torch._C._nn.linear(y, l_self_modules_o_parameters_weight_, None);  y = l_self_modules_o_parameters_weight_ = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:179 in all_reduce, code: tensor = torch.ops._c10d_functional.all_reduce(
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         tensor_1: "f32[2, 6, 16][96, 16, 1]cpu" = torch.ops._c10d_functional.all_reduce(linear_1, 'sum', '0');  linear_1 = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:142 in wait_tensor, code: return torch.ops._c10d_functional.wait_tensor(tensor)  # type: ignore[attr-defined]
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         wait_tensor_1: "f32[2, 6, 16][96, 16, 1]cpu" = torch.ops._c10d_functional.wait_tensor(tensor_1);  tensor_1 = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         # File: model.py:53 in forward, code: return x + fc.all_reduce(self.o(y), "sum", dist.group.WORLD)
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         add: "f32[2, 6, 16][96, 16, 1]cpu" = x + wait_tensor_1;  x = wait_tensor_1 = None
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code]         return (add,)
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
[rank0]:V1130 01:02:52.766000 31274 torch/_dynamo/output_graph.py:2835] [0/0] [__graph_code] 
