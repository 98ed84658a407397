class GraphModule(torch.nn.Module):
    def forward(self, x):
        x: "f32[4, 8]";

        x, = fx_pytree.tree_flatten_spec(([x], {}), self._in_spec)
        # No stacktrace found for following nodes
        w: "f32[6, 8]" = self.w
        _guards_fn = self._guards_fn(x);  _guards_fn = None

        # File: model.py:68 in forward, code: fc.all_to_all_single(x, parts, parts, self.tp),
        all_to_all_single: "f32[4, 8]" = torch.ops._c10d_functional.all_to_all_single.default(x, [2, 2], [2, 2], '3')
        wait_tensor: "f32[4, 8]" = torch.ops._c10d_functional.wait_tensor.default(all_to_all_single);  all_to_all_single = None

        # File: model.py:69 in forward, code: fc.broadcast(x * 2, self.n - 1, self.tp),
        mul: "f32[4, 8]" = torch.ops.aten.mul.Tensor(x, 2)
        broadcast: "f32[4, 8]" = torch.ops._c10d_functional.broadcast.default(mul, 1, '3');  mul = None
        wait_tensor_1: "f32[4, 8]" = torch.ops._c10d_functional.wait_tensor.default(broadcast);  broadcast = None

        # File: model.py:70 in forward, code: fc.all_reduce(torch.cumsum(x, 0).sort(-1).values, "max", self.dp),
        cumsum: "f32[4, 8]" = torch.ops.aten.cumsum.default(x, 0)
        sort = torch.ops.aten.sort.default(cumsum);  cumsum = None
        getitem: "f32[4, 8]" = sort[0]
        getitem_1: "i64[4, 8]" = sort[1];  sort = getitem_1 = None
        all_reduce: "f32[4, 8]" = torch.ops._c10d_functional.all_reduce.default(getitem, 'max', '1');  getitem = None
        wait_tensor_2: "f32[4, 8]" = torch.ops._c10d_functional.wait_tensor.default(all_reduce);  all_reduce = None

        # File: model.py:71 in forward, code: fc.reduce_scatter_tensor(x @ self.w.t(), "sum", 0, self.tp),
        t: "f32[8, 6]" = torch.ops.aten.t.default(w)
        matmul: "f32[4, 6]" = torch.ops.aten.matmul.default(x, t);  t = None
        reduce_scatter_tensor: "f32[2, 6]" = torch.ops._c10d_functional.reduce_scatter_tensor.default(matmul, 'sum', 2, '3');  matmul = None
        wait_tensor_3: "f32[2, 6]" = torch.ops._c10d_functional.wait_tensor.default(reduce_scatter_tensor);  reduce_scatter_tensor = None

        # File: model.py:72 in forward, code: fc.all_gather_tensor(x[:, :2].t() @ self.w[:2].t()[:4].relu().mean(1), 0, self.dp),
        slice_1: "f32[4, 2]" = torch.ops.aten.slice.Tensor(x, 1, 0, 2)
        t_1: "f32[2, 4]" = torch.ops.aten.t.default(slice_1);  slice_1 = None
        slice_2: "f32[2, 8]" = torch.ops.aten.slice.Tensor(w, 0, 0, 2);  w = None
        t_2: "f32[8, 2]" = torch.ops.aten.t.default(slice_2);  slice_2 = None
        slice_3: "f32[4, 2]" = torch.ops.aten.slice.Tensor(t_2, 0, 0, 4);  t_2 = None
        relu: "f32[4, 2]" = torch.ops.aten.relu.default(slice_3);  slice_3 = None
        mean: "f32[4]" = torch.ops.aten.mean.dim(relu, [1]);  relu = None
        matmul_1: "f32[2]" = torch.ops.aten.matmul.default(t_1, mean);  t_1 = mean = None
        all_gather_into_tensor: "f32[4]" = torch.ops._c10d_functional.all_gather_into_tensor.default(matmul_1, 2, '1');  matmul_1 = None
        wait_tensor_4: "f32[4]" = torch.ops._c10d_functional.wait_tensor.default(all_gather_into_tensor);  all_gather_into_tensor = None

        # File: model.py:73 in forward, code: fc.all_reduce(x.softmax(-1).mean(), "sum", self.dp),
        softmax: "f32[4, 8]" = torch.ops.aten.softmax.int(x, -1);  x = None
        mean_1: "f32[]" = torch.ops.aten.mean.default(softmax);  softmax = None
        all_reduce_1: "f32[]" = torch.ops._c10d_functional.all_reduce.default(mean_1, 'sum', '1');  mean_1 = None
        wait_tensor_5: "f32[]" = torch.ops._c10d_functional.wait_tensor.default(all_reduce_1);  all_reduce_1 = None
        return pytree.tree_unflatten((wait_tensor, wait_tensor_1, wait_tensor_2, wait_tensor_3, wait_tensor_4, wait_tensor_5), self._out_spec)
