module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x24x4x8xf32>, %arg1: tensor<2x24x2x8xf32>, %arg2: tensor<2x24x2x8xf32>, %arg3: tensor<24x24xf32>) -> (tensor<2x24x4x8xf32> {jax.result_info = "result[0]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[1]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[2]"}, tensor<2x4x24x8xf32> {jax.result_info = "result[3]"}, tensor<2x24x2x2x8xf32> {jax.result_info = "result[4]"}, tensor<2x2x8xf32> {jax.result_info = "result[5]"}, tensor<2x8x2x8xf32> {jax.result_info = "result[6]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[7]"}, tensor<2x2x24x24xf32> {jax.result_info = "result[8]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[9]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[10]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[11]"}) {
    %c = stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]> : tensor<24xi32>
    %c_0 = stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]> : tensor<24xi32>
    %0 = stablehlo.reshape %arg0 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %1 = stablehlo.dot_general %0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x2x24xf32>
    %cst = stablehlo.constant dense<0.353553385> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x24x2x24xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<2x2x24x2x24xf32>
    %c_1 = stablehlo.constant dense<true> : tensor<i1>
    %4 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i1>) -> tensor<2x2x24x24xi1>
    %c_2 = stablehlo.constant dense<true> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i1>) -> tensor<24x24xi1>
    %6 = call @tril(%5) : (tensor<24x24xi1>) -> tensor<24x24xi1>
    %7 = stablehlo.broadcast_in_dim %6, dims = [2, 3] : (tensor<24x24xi1>) -> tensor<1x1x24x24xi1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (tensor<1x1x24x24xi1>) -> tensor<2x2x24x24xi1>
    %9 = stablehlo.and %4, %8 : tensor<2x2x24x24xi1>
    %10 = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %11 = stablehlo.broadcast_in_dim %c_0, dims = [1] : (tensor<24xi32>) -> tensor<1x24xi32>
    %c_3 = stablehlo.constant dense<4> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<1x24xi32>
    %13 = stablehlo.add %11, %12 : tensor<1x24xi32>
    %14 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<24x1xi32>) -> tensor<24x24xi32>
    %15 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<1x24xi32>) -> tensor<24x24xi32>
    %16 = stablehlo.compare LE, %14, %15, SIGNED : (tensor<24x24xi32>, tensor<24x24xi32>) -> tensor<24x24xi1>
    %17 = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %18 = stablehlo.broadcast_in_dim %c_0, dims = [1] : (tensor<24xi32>) -> tensor<1x24xi32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %19 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<1x24xi32>
    %20 = stablehlo.subtract %18, %19 : tensor<1x24xi32>
    %21 = stablehlo.broadcast_in_dim %17, dims = [0, 1] : (tensor<24x1xi32>) -> tensor<24x24xi32>
    %22 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<1x24xi32>) -> tensor<24x24xi32>
    %23 = stablehlo.compare GE, %21, %22, SIGNED : (tensor<24x24xi32>, tensor<24x24xi32>) -> tensor<24x24xi1>
    %24 = stablehlo.and %23, %16 : tensor<24x24xi1>
    %25 = stablehlo.broadcast_in_dim %24, dims = [2, 3] : (tensor<24x24xi1>) -> tensor<1x1x24x24xi1>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2, 3] : (tensor<1x1x24x24xi1>) -> tensor<2x2x24x24xi1>
    %27 = stablehlo.and %9, %26 : tensor<2x2x24x24xi1>
    %cst_5 = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
    %28 = call @_where(%27, %3, %cst_5) : (tensor<2x2x24x24xi1>, tensor<2x2x24x2x24xf32>, tensor<f32>) -> tensor<2x2x2x24x24xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %29 = stablehlo.reduce(%28 init: %cst_6) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x2x2x24xf32>
    %31 = stablehlo.maximum %30, %29 : tensor<2x2x2x24xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %34 = stablehlo.subtract %28, %33 : tensor<2x2x2x24x24xf32>
    %35 = stablehlo.exponential %34 : tensor<2x2x2x24x24xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %36 = stablehlo.reduce(%35 init: %cst_8) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %39 = stablehlo.divide %35, %38 : tensor<2x2x2x24x24xf32>
    %40 = stablehlo.dot_general %arg2, %39, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x8x2x24xf32>
    %41 = stablehlo.transpose %40, dims = [3, 0, 4, 1, 2] : (tensor<2x2x8x2x24xf32>) -> tensor<2x2x24x2x8xf32>
    %42 = stablehlo.transpose %41, dims = [1, 2, 3, 0, 4] : (tensor<2x2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %43 = stablehlo.reshape %42 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %44 = stablehlo.reshape %arg0 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %45 = stablehlo.dot_general %44, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x2x24xf32>
    %cst_9 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %46 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2x2x24x2x24xf32>
    %47 = stablehlo.multiply %45, %46 : tensor<2x2x24x2x24xf32>
    %c_10 = stablehlo.constant dense<true> : tensor<i1>
    %48 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i1>) -> tensor<2x2x24x24xi1>
    %c_11 = stablehlo.constant dense<true> : tensor<i1>
    %49 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i1>) -> tensor<24x24xi1>
    %50 = call @tril(%49) : (tensor<24x24xi1>) -> tensor<24x24xi1>
    %51 = stablehlo.broadcast_in_dim %50, dims = [2, 3] : (tensor<24x24xi1>) -> tensor<1x1x24x24xi1>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2, 3] : (tensor<1x1x24x24xi1>) -> tensor<2x2x24x24xi1>
    %53 = stablehlo.and %48, %52 : tensor<2x2x24x24xi1>
    %cst_12 = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
    %54 = call @_where(%53, %47, %cst_12) : (tensor<2x2x24x24xi1>, tensor<2x2x24x2x24xf32>, tensor<f32>) -> tensor<2x2x2x24x24xf32>
    %cst_13 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %55 = stablehlo.reduce(%54 init: %cst_13) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %cst_14 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<2x2x2x24xf32>
    %57 = stablehlo.maximum %56, %55 : tensor<2x2x2x24xf32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %59 = stablehlo.broadcast_in_dim %58, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %60 = stablehlo.subtract %54, %59 : tensor<2x2x2x24x24xf32>
    %61 = stablehlo.exponential %60 : tensor<2x2x2x24x24xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %62 = stablehlo.reduce(%61 init: %cst_15) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %65 = stablehlo.divide %61, %64 : tensor<2x2x2x24x24xf32>
    %66 = stablehlo.dot_general %arg2, %65, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x8x2x24xf32>
    %67 = stablehlo.transpose %66, dims = [3, 0, 4, 1, 2] : (tensor<2x2x8x2x24xf32>) -> tensor<2x2x24x2x8xf32>
    %68 = stablehlo.transpose %67, dims = [1, 2, 3, 0, 4] : (tensor<2x2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %69 = stablehlo.reshape %68 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %70 = stablehlo.reshape %arg0 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %71 = stablehlo.dot_general %70, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x2x24xf32>
    %cst_16 = stablehlo.constant dense<3.000000e-01> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x2x24x2x24xf32>
    %73 = stablehlo.multiply %71, %72 : tensor<2x2x24x2x24xf32>
    %cst_17 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %74 = stablehlo.reduce(%73 init: %cst_17) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x24x2x24xf32>, tensor<f32>) -> tensor<2x2x24x2xf32>
    %cst_18 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x2x24x2xf32>
    %76 = stablehlo.maximum %75, %74 : tensor<2x2x24x2xf32>
    %77 = stablehlo.transpose %76, dims = [3, 0, 1, 2] : (tensor<2x2x24x2xf32>) -> tensor<2x2x2x24xf32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %79 = stablehlo.transpose %73, dims = [3, 0, 1, 2, 4] : (tensor<2x2x24x2x24xf32>) -> tensor<2x2x2x24x24xf32>
    %80 = stablehlo.broadcast_in_dim %78, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %81 = stablehlo.subtract %79, %80 : tensor<2x2x2x24x24xf32>
    %82 = stablehlo.exponential %81 : tensor<2x2x2x24x24xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %83 = stablehlo.reduce(%82 init: %cst_19) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %84 = stablehlo.broadcast_in_dim %83, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %85 = stablehlo.broadcast_in_dim %84, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %86 = stablehlo.divide %82, %85 : tensor<2x2x2x24x24xf32>
    %87 = stablehlo.dot_general %arg2, %86, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x8x2x24xf32>
    %88 = stablehlo.transpose %87, dims = [3, 0, 4, 1, 2] : (tensor<2x2x8x2x24xf32>) -> tensor<2x2x24x2x8xf32>
    %89 = stablehlo.transpose %88, dims = [1, 2, 3, 0, 4] : (tensor<2x2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %90 = stablehlo.reshape %89 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %91 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1, 2, 4] : (tensor<2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %92 = stablehlo.reshape %91 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %93 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1, 2, 4] : (tensor<2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %94 = stablehlo.reshape %93 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %95 = stablehlo.transpose %arg0, dims = [0, 2, 1, 3] : (tensor<2x24x4x8xf32>) -> tensor<2x4x24x8xf32>
    %96 = stablehlo.transpose %92, dims = [0, 2, 1, 3] : (tensor<2x24x4x8xf32>) -> tensor<2x4x24x8xf32>
    %97 = stablehlo.transpose %94, dims = [0, 2, 1, 3] : (tensor<2x24x4x8xf32>) -> tensor<2x4x24x8xf32>
    %98 = stablehlo.dot_general %95, %96, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x24x8xf32>, tensor<2x4x24x8xf32>) -> tensor<2x4x24x24xf32>
    %cst_20 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %99 = stablehlo.sqrt %cst_20 : tensor<f32>
    %100 = stablehlo.convert %99 : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %100, dims = [] : (tensor<f32>) -> tensor<2x4x24x24xf32>
    %102 = stablehlo.divide %98, %101 : tensor<2x4x24x24xf32>
    %c_21 = stablehlo.constant dense<true> : tensor<i1>
    %103 = stablehlo.broadcast_in_dim %c_21, dims = [] : (tensor<i1>) -> tensor<24x24xi1>
    %104 = call @tril_0(%103) : (tensor<24x24xi1>) -> tensor<24x24xi1>
    %cst_22 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %105 = call @_where_1(%104, %102, %cst_22) : (tensor<24x24xi1>, tensor<2x4x24x24xf32>, tensor<f32>) -> tensor<2x4x24x24xf32>
    %cst_23 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %106 = stablehlo.reduce(%105 init: %cst_23) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x24x24xf32>, tensor<f32>) -> tensor<2x4x24xf32>
    %cst_24 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %107 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<2x4x24xf32>
    %108 = stablehlo.maximum %107, %106 : tensor<2x4x24xf32>
    %109 = stablehlo.broadcast_in_dim %108, dims = [0, 1, 2] : (tensor<2x4x24xf32>) -> tensor<2x4x24x1xf32>
    %110 = stablehlo.broadcast_in_dim %109, dims = [0, 1, 2, 3] : (tensor<2x4x24x1xf32>) -> tensor<2x4x24x24xf32>
    %111 = stablehlo.subtract %105, %110 : tensor<2x4x24x24xf32>
    %112 = stablehlo.exponential %111 : tensor<2x4x24x24xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %113 = stablehlo.reduce(%112 init: %cst_25) applies stablehlo.add across dimensions = [3] : (tensor<2x4x24x24xf32>, tensor<f32>) -> tensor<2x4x24xf32>
    %114 = stablehlo.broadcast_in_dim %113, dims = [0, 1, 2] : (tensor<2x4x24xf32>) -> tensor<2x4x24x1xf32>
    %115 = stablehlo.broadcast_in_dim %114, dims = [0, 1, 2, 3] : (tensor<2x4x24x1xf32>) -> tensor<2x4x24x24xf32>
    %116 = stablehlo.divide %112, %115 : tensor<2x4x24x24xf32>
    %117 = stablehlo.dot_general %116, %97, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x24x24xf32>, tensor<2x4x24x8xf32>) -> tensor<2x4x24x8xf32>
    %118 = stablehlo.reshape %arg0 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %cst_26 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %119 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<2x24x2x2x8xf32>
    %120 = stablehlo.multiply %118, %119 : tensor<2x24x2x2x8xf32>
    %121 = stablehlo.dot_general %arg1, %120, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x2x8xf32>) -> tensor<2x2x24x24x2xf32>
    %122 = stablehlo.transpose %121, dims = [0, 1, 4, 3, 2] : (tensor<2x2x24x24x2xf32>) -> tensor<2x2x2x24x24xf32>
    %123 = stablehlo.iota dim = 0 : tensor<24xi32>
    %124 = stablehlo.broadcast_in_dim %123, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %125 = stablehlo.broadcast_in_dim %123, dims = [1] : (tensor<24xi32>) -> tensor<1x24xi32>
    %126 = stablehlo.broadcast_in_dim %124, dims = [0, 1] : (tensor<24x1xi32>) -> tensor<24x24xi32>
    %127 = stablehlo.broadcast_in_dim %125, dims = [0, 1] : (tensor<1x24xi32>) -> tensor<24x24xi32>
    %128 = stablehlo.subtract %126, %127 : tensor<24x24xi32>
    %c_27 = stablehlo.constant dense<0> : tensor<i32>
    %129 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<i32>) -> tensor<24x24xi32>
    %130 = stablehlo.compare GE, %128, %129, SIGNED : (tensor<24x24xi32>, tensor<24x24xi32>) -> tensor<24x24xi1>
    %131 = stablehlo.broadcast_in_dim %123, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %132 = stablehlo.broadcast_in_dim %123, dims = [1] : (tensor<24xi32>) -> tensor<1x24xi32>
    %133 = stablehlo.broadcast_in_dim %131, dims = [0, 1] : (tensor<24x1xi32>) -> tensor<24x24xi32>
    %134 = stablehlo.broadcast_in_dim %132, dims = [0, 1] : (tensor<1x24xi32>) -> tensor<24x24xi32>
    %135 = stablehlo.subtract %133, %134 : tensor<24x24xi32>
    %c_28 = stablehlo.constant dense<7> : tensor<i32>
    %136 = stablehlo.broadcast_in_dim %c_28, dims = [] : (tensor<i32>) -> tensor<24x24xi32>
    %137 = stablehlo.compare LT, %135, %136, SIGNED : (tensor<24x24xi32>, tensor<24x24xi32>) -> tensor<24x24xi1>
    %138 = stablehlo.and %130, %137 : tensor<24x24xi1>
    %cst_29 = stablehlo.constant dense<-3.40282347E+38> : tensor<f32>
    %139 = call @_where_2(%138, %122, %cst_29) : (tensor<24x24xi1>, tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24x24xf32>
    %cst_30 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %140 = stablehlo.reduce(%139 init: %cst_30) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %cst_31 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %141 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<2x2x2x24xf32>
    %142 = stablehlo.maximum %141, %140 : tensor<2x2x2x24xf32>
    %143 = stablehlo.broadcast_in_dim %142, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %144 = stablehlo.broadcast_in_dim %143, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %145 = stablehlo.subtract %139, %144 : tensor<2x2x2x24x24xf32>
    %146 = stablehlo.exponential %145 : tensor<2x2x2x24x24xf32>
    %cst_32 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %147 = stablehlo.reduce(%146 init: %cst_32) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %148 = stablehlo.broadcast_in_dim %147, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %149 = stablehlo.broadcast_in_dim %148, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %150 = stablehlo.divide %146, %149 : tensor<2x2x2x24x24xf32>
    %151 = stablehlo.dot_general %arg2, %150, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x8x2x24xf32>
    %152 = stablehlo.transpose %151, dims = [0, 4, 1, 3, 2] : (tensor<2x2x8x2x24xf32>) -> tensor<2x24x2x2x8xf32>
    %153 = stablehlo.slice %arg0 [0:2, 23:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x1x2x8xf32>
    %154 = stablehlo.reshape %153 : (tensor<2x1x2x8xf32>) -> tensor<2x2x8xf32>
    %155 = stablehlo.dot_general %154, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24xf32>
    %cst_33 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %156 = stablehlo.reduce(%155 init: %cst_33) applies stablehlo.maximum across dimensions = [2] : (tensor<2x2x24xf32>, tensor<f32>) -> tensor<2x2xf32>
    %cst_34 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %157 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %158 = stablehlo.maximum %157, %156 : tensor<2x2xf32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x1xf32>
    %160 = stablehlo.broadcast_in_dim %159, dims = [0, 1, 2] : (tensor<2x2x1xf32>) -> tensor<2x2x24xf32>
    %161 = stablehlo.subtract %155, %160 : tensor<2x2x24xf32>
    %162 = stablehlo.exponential %161 : tensor<2x2x24xf32>
    %cst_35 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %163 = stablehlo.reduce(%162 init: %cst_35) applies stablehlo.add across dimensions = [2] : (tensor<2x2x24xf32>, tensor<f32>) -> tensor<2x2xf32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x1xf32>
    %165 = stablehlo.broadcast_in_dim %164, dims = [0, 1, 2] : (tensor<2x2x1xf32>) -> tensor<2x2x24xf32>
    %166 = stablehlo.divide %162, %165 : tensor<2x2x24xf32>
    %167 = stablehlo.dot_general %166, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x8xf32>
    %168 = stablehlo.slice %arg0 [0:2, 16:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x8x2x8xf32>
    %169 = stablehlo.dot_general %168, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x8x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x8x24xf32>
    %170 = stablehlo.iota dim = 0 : tensor<24xi32>
    %171 = stablehlo.broadcast_in_dim %170, dims = [1] : (tensor<24xi32>) -> tensor<1x24xi32>
    %172 = stablehlo.iota dim = 0 : tensor<8xi32>
    %173 = stablehlo.broadcast_in_dim %172, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
    %c_36 = stablehlo.constant dense<24> : tensor<i32>
    %174 = stablehlo.broadcast_in_dim %c_36, dims = [] : (tensor<i32>) -> tensor<8x1xi32>
    %175 = stablehlo.add %173, %174 : tensor<8x1xi32>
    %c_37 = stablehlo.constant dense<8> : tensor<i32>
    %176 = stablehlo.broadcast_in_dim %c_37, dims = [] : (tensor<i32>) -> tensor<8x1xi32>
    %177 = stablehlo.subtract %175, %176 : tensor<8x1xi32>
    %178 = stablehlo.broadcast_in_dim %171, dims = [0, 1] : (tensor<1x24xi32>) -> tensor<8x24xi32>
    %179 = stablehlo.broadcast_in_dim %177, dims = [0, 1] : (tensor<8x1xi32>) -> tensor<8x24xi32>
    %180 = stablehlo.compare LE, %178, %179, SIGNED : (tensor<8x24xi32>, tensor<8x24xi32>) -> tensor<8x24xi1>
    %cst_38 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %181 = call @_where_3(%180, %169, %cst_38) : (tensor<8x24xi1>, tensor<2x2x8x24xf32>, tensor<f32>) -> tensor<2x2x8x24xf32>
    %cst_39 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %182 = stablehlo.reduce(%181 init: %cst_39) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x8x24xf32>, tensor<f32>) -> tensor<2x2x8xf32>
    %cst_40 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %183 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<2x2x8xf32>
    %184 = stablehlo.maximum %183, %182 : tensor<2x2x8xf32>
    %185 = stablehlo.broadcast_in_dim %184, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x1xf32>
    %186 = stablehlo.broadcast_in_dim %185, dims = [0, 1, 2, 3] : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x24xf32>
    %187 = stablehlo.subtract %181, %186 : tensor<2x2x8x24xf32>
    %188 = stablehlo.exponential %187 : tensor<2x2x8x24xf32>
    %cst_41 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %189 = stablehlo.reduce(%188 init: %cst_41) applies stablehlo.add across dimensions = [3] : (tensor<2x2x8x24xf32>, tensor<f32>) -> tensor<2x2x8xf32>
    %190 = stablehlo.broadcast_in_dim %189, dims = [0, 1, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8x1xf32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [0, 1, 2, 3] : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x24xf32>
    %192 = stablehlo.divide %188, %191 : tensor<2x2x8x24xf32>
    %193 = stablehlo.dot_general %arg2, %192, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x8x24xf32>) -> tensor<2x2x8x8xf32>
    %194 = stablehlo.transpose %193, dims = [0, 3, 1, 2] : (tensor<2x2x8x8xf32>) -> tensor<2x8x2x8xf32>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %195 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<24x24xf32>
    %196 = stablehlo.compare GT, %arg3, %195, FLOAT : (tensor<24x24xf32>, tensor<24x24xf32>) -> tensor<24x24xi1>
    %197 = stablehlo.slice %arg0 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %198 = stablehlo.dot_general %197, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %cst_43 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %199 = call @_where_4(%196, %198, %cst_43) : (tensor<24x24xi1>, tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24x24xf32>
    %cst_44 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %200 = stablehlo.reduce(%199 init: %cst_44) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %cst_45 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %201 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<2x2x24xf32>
    %202 = stablehlo.maximum %201, %200 : tensor<2x2x24xf32>
    %203 = stablehlo.broadcast_in_dim %202, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %204 = stablehlo.broadcast_in_dim %203, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %205 = stablehlo.subtract %199, %204 : tensor<2x2x24x24xf32>
    %206 = stablehlo.exponential %205 : tensor<2x2x24x24xf32>
    %cst_46 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %207 = stablehlo.reduce(%206 init: %cst_46) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %208 = stablehlo.broadcast_in_dim %207, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %209 = stablehlo.broadcast_in_dim %208, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %210 = stablehlo.divide %206, %209 : tensor<2x2x24x24xf32>
    %211 = stablehlo.dot_general %arg2, %210, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %212 = stablehlo.transpose %211, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %213 = stablehlo.slice %arg0 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %214 = stablehlo.dot_general %213, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %cst_47 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %215 = stablehlo.reduce(%214 init: %cst_47) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %cst_48 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %216 = stablehlo.broadcast_in_dim %cst_48, dims = [] : (tensor<f32>) -> tensor<2x2x24xf32>
    %217 = stablehlo.maximum %216, %215 : tensor<2x2x24xf32>
    %218 = stablehlo.broadcast_in_dim %217, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %219 = stablehlo.broadcast_in_dim %218, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %220 = stablehlo.subtract %214, %219 : tensor<2x2x24x24xf32>
    %221 = stablehlo.exponential %220 : tensor<2x2x24x24xf32>
    %cst_49 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %222 = stablehlo.reduce(%221 init: %cst_49) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %223 = stablehlo.broadcast_in_dim %222, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %224 = stablehlo.broadcast_in_dim %223, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %225 = stablehlo.divide %221, %224 : tensor<2x2x24x24xf32>
    %226 = stablehlo.dot_general %arg2, %225, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %227 = stablehlo.transpose %226, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %228 = stablehlo.slice %arg0 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %229 = stablehlo.dot_general %228, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %cst_50 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %230 = stablehlo.reduce(%229 init: %cst_50) applies stablehlo.maximum across dimensions = [2] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %cst_51 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %231 = stablehlo.broadcast_in_dim %cst_51, dims = [] : (tensor<f32>) -> tensor<2x2x24xf32>
    %232 = stablehlo.maximum %231, %230 : tensor<2x2x24xf32>
    %233 = stablehlo.broadcast_in_dim %232, dims = [0, 1, 3] : (tensor<2x2x24xf32>) -> tensor<2x2x1x24xf32>
    %234 = stablehlo.broadcast_in_dim %233, dims = [0, 1, 2, 3] : (tensor<2x2x1x24xf32>) -> tensor<2x2x24x24xf32>
    %235 = stablehlo.subtract %229, %234 : tensor<2x2x24x24xf32>
    %236 = stablehlo.exponential %235 : tensor<2x2x24x24xf32>
    %cst_52 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %237 = stablehlo.reduce(%236 init: %cst_52) applies stablehlo.add across dimensions = [2] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %238 = stablehlo.broadcast_in_dim %237, dims = [0, 1, 3] : (tensor<2x2x24xf32>) -> tensor<2x2x1x24xf32>
    %239 = stablehlo.broadcast_in_dim %238, dims = [0, 1, 2, 3] : (tensor<2x2x1x24xf32>) -> tensor<2x2x24x24xf32>
    %240 = stablehlo.divide %236, %239 : tensor<2x2x24x24xf32>
    %241 = stablehlo.dot_general %arg2, %240, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %242 = stablehlo.transpose %241, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %243 = stablehlo.slice %arg0 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %244 = stablehlo.dot_general %243, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %c_53 = stablehlo.constant dense<true> : tensor<i1>
    %245 = stablehlo.broadcast_in_dim %c_53, dims = [] : (tensor<i1>) -> tensor<24x24xi1>
    %246 = call @tril_5(%245) : (tensor<24x24xi1>) -> tensor<24x24xi1>
    %cst_54 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %247 = call @_where_4(%246, %244, %cst_54) : (tensor<24x24xi1>, tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24x24xf32>
    %cst_55 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %248 = stablehlo.reduce(%247 init: %cst_55) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %cst_56 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %249 = stablehlo.broadcast_in_dim %cst_56, dims = [] : (tensor<f32>) -> tensor<2x2x24xf32>
    %250 = stablehlo.maximum %249, %248 : tensor<2x2x24xf32>
    %251 = stablehlo.broadcast_in_dim %250, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %252 = stablehlo.broadcast_in_dim %251, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %253 = stablehlo.subtract %247, %252 : tensor<2x2x24x24xf32>
    %254 = stablehlo.exponential %253 : tensor<2x2x24x24xf32>
    %cst_57 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %255 = stablehlo.reduce(%254 init: %cst_57) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %256 = stablehlo.broadcast_in_dim %255, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %257 = stablehlo.broadcast_in_dim %256, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %258 = stablehlo.divide %254, %257 : tensor<2x2x24x24xf32>
    %259 = stablehlo.dot_general %arg2, %258, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %260 = stablehlo.transpose %259, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    return %43, %69, %90, %117, %152, %167, %194, %212, %225, %227, %242, %260 : tensor<2x24x4x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x4x8xf32>, tensor<2x4x24x8xf32>, tensor<2x24x2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x2x24x24xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>
  }
  func.func private @tril(%arg0: tensor<24x24xi1>) -> tensor<24x24xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<24x24xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<24x24xi32>
    %2 = stablehlo.add %0, %1 : tensor<24x24xi32>
    %3 = stablehlo.iota dim = 1 : tensor<24x24xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<24x24xi32>, tensor<24x24xi32>) -> tensor<24x24xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<24x24xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<24x24xi1>, tensor<24x24xi1>
    return %6 : tensor<24x24xi1>
  }
  func.func private @_where(%arg0: tensor<2x2x24x24xi1>, %arg1: tensor<2x2x24x2x24xf32>, %arg2: tensor<f32>) -> tensor<2x2x2x24x24xf32> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x2x24x24xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3, 4] : (tensor<2x2x24x24xi1>) -> tensor<2x2x2x24x24xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3, 4] : (tensor<2x2x24x24xf32>) -> tensor<2x2x2x24x24xf32>
    %3 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2, 4] : (tensor<2x2x24x2x24xf32>) -> tensor<2x2x2x24x24xf32>
    %4 = stablehlo.select %1, %3, %2 : tensor<2x2x2x24x24xi1>, tensor<2x2x2x24x24xf32>
    return %4 : tensor<2x2x2x24x24xf32>
  }
  func.func private @tril_0(%arg0: tensor<24x24xi1>) -> tensor<24x24xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<24x24xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<24x24xi32>
    %2 = stablehlo.add %0, %1 : tensor<24x24xi32>
    %3 = stablehlo.iota dim = 1 : tensor<24x24xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<24x24xi32>, tensor<24x24xi32>) -> tensor<24x24xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<24x24xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<24x24xi1>, tensor<24x24xi1>
    return %6 : tensor<24x24xi1>
  }
  func.func private @_where_1(%arg0: tensor<24x24xi1>, %arg1: tensor<2x4x24x24xf32>, %arg2: tensor<f32>) -> tensor<2x4x24x24xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<24x24xi1>) -> tensor<2x4x24x24xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x4x24x24xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x4x24x24xi1>, tensor<2x4x24x24xf32>
    return %3 : tensor<2x4x24x24xf32>
  }
  func.func private @_where_2(%arg0: tensor<24x24xi1>, %arg1: tensor<2x2x2x24x24xf32>, %arg2: tensor<f32>) -> tensor<2x2x2x24x24xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [3, 4] : (tensor<24x24xi1>) -> tensor<2x2x2x24x24xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x2x2x24x24xf32>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<2x2x2x24x24xi1>, tensor<2x2x2x24x24xf32>
    return %2 : tensor<2x2x2x24x24xf32>
  }
  func.func private @_where_3(%arg0: tensor<8x24xi1>, %arg1: tensor<2x2x8x24xf32>, %arg2: tensor<f32>) -> tensor<2x2x8x24xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<8x24xi1>) -> tensor<2x2x8x24xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x2x8x24xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x2x8x24xi1>, tensor<2x2x8x24xf32>
    return %3 : tensor<2x2x8x24xf32>
  }
  func.func private @_where_4(%arg0: tensor<24x24xi1>, %arg1: tensor<2x2x24x24xf32>, %arg2: tensor<f32>) -> tensor<2x2x24x24xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<24x24xi1>) -> tensor<2x2x24x24xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x2x24x24xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x2x24x24xi1>, tensor<2x2x24x24xf32>
    return %3 : tensor<2x2x24x24xf32>
  }
  func.func private @tril_5(%arg0: tensor<24x24xi1>) -> tensor<24x24xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<24x24xi32>
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<24x24xi32>
    %2 = stablehlo.add %0, %1 : tensor<24x24xi32>
    %3 = stablehlo.iota dim = 1 : tensor<24x24xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<24x24xi32>, tensor<24x24xi32>) -> tensor<24x24xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<24x24xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<24x24xi1>, tensor<24x24xi1>
    return %6 : tensor<24x24xi1>
  }
}
