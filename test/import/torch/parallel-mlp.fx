ExportedProgram:
    class GraphModule(torch.nn.Module):
        def forward(self, p_norm_weight: "f32[16]", p_norm_bias: "f32[16]", p_up_weight: "f32[8, 16]", p_up_bias: "f32[8]", p_down_weight: "f32[16, 8]", x: "f32[4, 16]"):
            # File: model.py:228 in forward, code: return F.layer_norm(
            layer_norm: "f32[4, 16]" = torch.ops.aten.layer_norm.default(x, [16], p_norm_weight, p_norm_bias, 1e-05, False);  p_norm_weight = p_norm_bias = None

            # File: model.py:33 in forward, code: rows = fc.all_gather_tensor(self.norm(x), 0, dist.group.WORLD)
            all_gather_into_tensor: "f32[16, 16]" = torch.ops._c10d_functional.all_gather_into_tensor.default(layer_norm, 4, '0');  layer_norm = None
            wait_tensor: "f32[16, 16]" = torch.ops._c10d_functional.wait_tensor.default(all_gather_into_tensor);  all_gather_into_tensor = None

            # File: model.py:134 in forward, code: return F.linear(input, self.weight, self.bias)
            linear: "f32[16, 8]" = torch.ops.aten.linear.default(wait_tensor, p_up_weight, p_up_bias);  wait_tensor = p_up_weight = p_up_bias = None

            # File: model.py:34 in forward, code: y = self.down(F.gelu(self.up(rows)))
            gelu: "f32[16, 8]" = torch.ops.aten.gelu.default(linear);  linear = None

            # File: model.py:134 in forward, code: return F.linear(input, self.weight, self.bias)
            linear_1: "f32[16, 16]" = torch.ops.aten.linear.default(gelu, p_down_weight);  gelu = p_down_weight = None

            # File: model.py:35 in forward, code: return x + fc.reduce_scatter_tensor(y, "sum", 0, dist.group.WORLD)
            reduce_scatter_tensor: "f32[4, 16]" = torch.ops._c10d_functional.reduce_scatter_tensor.default(linear_1, 'sum', 4, '0');  linear_1 = None
            wait_tensor_1: "f32[4, 16]" = torch.ops._c10d_functional.wait_tensor.default(reduce_scatter_tensor);  reduce_scatter_tensor = None
            add: "f32[4, 16]" = torch.ops.aten.add.Tensor(x, wait_tensor_1);  x = wait_tensor_1 = None
            return (add,)

Graph signature:
    # inputs
    p_norm_weight: PARAMETER target='norm.weight'
    p_norm_bias: PARAMETER target='norm.bias'
    p_up_weight: PARAMETER target='up.weight'
    p_up_bias: PARAMETER target='up.bias'
    p_down_weight: PARAMETER target='down.weight'
    x: USER_INPUT

    # outputs
    add: USER_OUTPUT

Range constraints: {}
