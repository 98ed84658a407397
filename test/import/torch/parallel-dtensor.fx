[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs] TRACED GRAPH
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]  ===== Forward graph 0 =====
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]  torch/fx/_lazy_graph_module.py class <lambda>(torch.nn.Module):
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]     def forward(self, arg0_1: "f32[4, 16][16, 1]cpu", arg1_1, arg2_1: "f32[8, 16][16, 1]cpu", arg3_1, arg4_1: "f32[8][1]cpu", arg5_1, arg6_1: "f32[16, 8][8, 1]cpu", arg7_1, arg8_1: "f32[16][1]cpu", arg9_1):
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         # File: torch/distributed/tensor/parallel/style.py:107 in _prepare_input_fn, code: input_tensor = DTensor.from_local(
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         view: "f32[4, 16][16, 1]cpu" = torch.ops.aten.view.default(arg0_1, [4, 16]);  arg0_1 = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs] 
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         # File: torch/distributed/tensor/parallel/style.py:116 in _prepare_input_fn, code: input_tensor = input_tensor.redistribute(
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         all_gather_into_tensor: "f32[16, 16][16, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor.default(view, 4, '0');  view = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         wait_tensor: "f32[16, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(all_gather_into_tensor);  all_gather_into_tensor = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs] 
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         # No stacktrace found for following nodes
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         t: "f32[16, 8][1, 16]cpu" = torch.ops.aten.t.default(arg2_1);  arg2_1 = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         addmm: "f32[16, 8][8, 1]cpu" = torch.ops.aten.addmm.default(arg4_1, wait_tensor, t);  arg4_1 = wait_tensor = t = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         gelu: "f32[16, 8][8, 1]cpu" = torch.ops.aten.gelu.default(addmm);  addmm = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs] 
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         # File: torch/distributed/tensor/parallel/style.py:237 in _prepare_input_fn, code: input_tensor = DTensor.from_local(
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         view_1: "f32[16, 8][8, 1]cpu" = torch.ops.aten.view.default(gelu, [16, 8]);  gelu = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs] 
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         # No stacktrace found for following nodes
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         t_1: "f32[8, 16][1, 8]cpu" = torch.ops.aten.t.default(arg6_1);  arg6_1 = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         div: "f32[16][1]cpu" = torch.ops.aten.div.Tensor(arg8_1, 4);  arg8_1 = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         addmm_1: "f32[16, 16][16, 1]cpu" = torch.ops.aten.addmm.default(div, view_1, t_1);  div = view_1 = t_1 = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs] 
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         # File: torch/distributed/tensor/parallel/style.py:298 in _prepare_output_fn, code: outputs = outputs.redistribute(placements=output_layouts, async_op=True)
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         reduce_scatter_tensor: "f32[4, 16][16, 1]cpu" = torch.ops._c10d_functional.reduce_scatter_tensor.default(addmm_1, 'sum', 4, '0');  addmm_1 = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         wait_tensor_1: "f32[4, 16][16, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(reduce_scatter_tensor);  reduce_scatter_tensor = None
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs]         return (wait_tensor_1,)
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs] 
[rank0]:I1130 01:14:39.536000 2835 torch/_functorch/_aot_autograd/graph_capture.py:411] [0/0] [__aot_graphs] 
