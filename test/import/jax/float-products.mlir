module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x5x6xbf16>, %arg1: tensor<6x7xbf16>, %arg2: tensor<2x5x6xbf16>, %arg3: tensor<7xf32>, %arg4: tensor<3x4xf16>) -> (tensor<2x5x7xbf16> {jax.result_info = "result[0]"}, tensor<2x5x5xbf16> {jax.result_info = "result[1]"}, tensor<2x6xbf16> {jax.result_info = "result[2]"}, tensor<3x3xf16> {jax.result_info = "result[3]"}, tensor<2x5x7xbf16> {jax.result_info = "result[4]"}, tensor<2x5xf32> {jax.result_info = "result[5]"}, tensor<2x5x7xbf16> {jax.result_info = "result[6]"}, tensor<2x5x7xf32> {jax.result_info = "result[7]"}, tensor<2x5x7xf16> {jax.result_info = "result[8]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5x6xbf16>, tensor<6x7xbf16>) -> tensor<2x5x7xf32>
    %1 = stablehlo.convert %0 : (tensor<2x5x7xf32>) -> tensor<2x5x7xbf16>
    %2 = stablehlo.dot_general %arg2, %arg0, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x5x6xbf16>, tensor<2x5x6xbf16>) -> tensor<2x5x5xf32>
    %3 = stablehlo.convert %2 : (tensor<2x5x5xf32>) -> tensor<2x5x5xbf16>
    %4 = stablehlo.dot_general %arg0, %arg2, batching_dims = [0, 2] x [0, 2], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x5x6xbf16>, tensor<2x5x6xbf16>) -> tensor<2x6xf32>
    %5 = stablehlo.convert %4 : (tensor<2x6xf32>) -> tensor<2x6xbf16>
    %6 = stablehlo.transpose %arg4, dims = [1, 0] : (tensor<3x4xf16>) -> tensor<4x3xf16>
    %7 = stablehlo.dot_general %arg4, %6, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3x4xf16>, tensor<4x3xf16>) -> tensor<3x3xf32>
    %8 = stablehlo.convert %7 : (tensor<3x3xf32>) -> tensor<3x3xf16>
    %9 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5x6xbf16>, tensor<6x7xbf16>) -> tensor<2x5x7xf32>
    %10 = stablehlo.convert %9 : (tensor<2x5x7xf32>) -> tensor<2x5x7xbf16>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%9 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x5x7xf32>, tensor<f32>) -> tensor<2x5xf32>
    %12 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5x6xbf16>, tensor<6x7xbf16>) -> tensor<2x5x7xf32>
    %13 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<7xf32>) -> tensor<1x1x7xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2] : (tensor<1x1x7xf32>) -> tensor<2x5x7xf32>
    %15 = stablehlo.add %12, %14 : tensor<2x5x7xf32>
    %16 = stablehlo.convert %15 : (tensor<2x5x7xf32>) -> tensor<2x5x7xbf16>
    %17 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5x6xbf16>, tensor<6x7xbf16>) -> tensor<2x5x7xf32>
    %18 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x5x6xbf16>, tensor<6x7xbf16>) -> tensor<2x5x7xf32>
    %19 = stablehlo.convert %18 : (tensor<2x5x7xf32>) -> tensor<2x5x7xf16>
    return %1, %3, %5, %8, %10, %11, %16, %17, %19 : tensor<2x5x7xbf16>, tensor<2x5x5xbf16>, tensor<2x6xbf16>, tensor<3x3xf16>, tensor<2x5x7xbf16>, tensor<2x5xf32>, tensor<2x5x7xbf16>, tensor<2x5x7xf32>, tensor<2x5x7xf16>
  }
}
