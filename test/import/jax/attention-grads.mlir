module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x24x4x8xf32>, %arg1: tensor<2x24x2x8xf32>, %arg2: tensor<2x24x2x8xf32>, %arg3: tensor<2x24x4x8xf32>) -> (tensor<2x24x4x8xf32> {jax.result_info = "result[0]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[1]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[2]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[3]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[4]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[5]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[6]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[7]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[8]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[9]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[10]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[11]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[12]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[13]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[14]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[15]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[16]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[17]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[18]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[19]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[20]"}, tensor<2x24x4x8xf32> {jax.result_info = "result[21]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[22]"}, tensor<2x24x2x8xf32> {jax.result_info = "result[23]"}) {
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
    %28:2 = call @_where(%27, %3, %cst_5) : (tensor<2x2x24x24xi1>, tensor<2x2x24x2x24xf32>, tensor<f32>) -> (tensor<2x2x2x24x24xf32>, tensor<2x2x2x24x24xi1>)
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %29 = stablehlo.reduce(%28#0 init: %cst_6) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x2x2x24xf32>
    %31 = stablehlo.maximum %30, %29 : tensor<2x2x2x24xf32>
    %32 = stablehlo.broadcast_in_dim %31, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %34 = stablehlo.subtract %28#0, %33 : tensor<2x2x2x24x24xf32>
    %35 = stablehlo.exponential %34 : tensor<2x2x2x24x24xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %36 = stablehlo.reduce(%35 init: %cst_8) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %39 = stablehlo.divide %35, %38 : tensor<2x2x2x24x24xf32>
    %40 = stablehlo.multiply %37, %37 : tensor<2x2x2x24x1xf32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2x2x2x24x1xf32>
    %42 = stablehlo.divide %41, %40 : tensor<2x2x2x24x1xf32>
    %43 = stablehlo.dot_general %arg2, %39, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x8x2x24xf32>
    %44 = stablehlo.transpose %43, dims = [3, 0, 4, 1, 2] : (tensor<2x2x8x2x24xf32>) -> tensor<2x2x24x2x8xf32>
    %45 = stablehlo.transpose %44, dims = [1, 2, 3, 0, 4] : (tensor<2x2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %46 = stablehlo.reshape %45 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %47 = stablehlo.reshape %arg3 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %48 = stablehlo.transpose %47, dims = [3, 0, 1, 2, 4] : (tensor<2x24x2x2x8xf32>) -> tensor<2x2x24x2x8xf32>
    %49 = stablehlo.transpose %48, dims = [1, 3, 4, 0, 2] : (tensor<2x2x24x2x8xf32>) -> tensor<2x2x8x2x24xf32>
    %50 = stablehlo.dot_general %49, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x2x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x2x24x24xf32>
    %51 = stablehlo.transpose %50, dims = [2, 0, 1, 3, 4] : (tensor<2x2x2x24x24xf32>) -> tensor<2x2x2x24x24xf32>
    %52 = stablehlo.dot_general %49, %39, batching_dims = [0, 1] x [1, 2], contracting_dims = [3, 4] x [0, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x2x24xf32>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %53 = stablehlo.transpose %52, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %54 = stablehlo.broadcast_in_dim %42, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %55 = stablehlo.multiply %51, %54 : tensor<2x2x2x24x24xf32>
    %56 = stablehlo.multiply %55, %35 : tensor<2x2x2x24x24xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %57 = stablehlo.reduce(%56 init: %cst_10) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %58 = stablehlo.reshape %57 : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %59 = stablehlo.negate %58 : tensor<2x2x2x24x1xf32>
    %60 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %61 = stablehlo.divide %51, %60 : tensor<2x2x2x24x24xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %62 = stablehlo.reduce(%59 init: %cst_11) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x1xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x24xf32>
    %64 = stablehlo.add %61, %63 : tensor<2x2x2x24x24xf32>
    %65 = stablehlo.multiply %64, %35 : tensor<2x2x2x24x24xf32>
    %66 = call @_where_0(%28#1, %65) : (tensor<2x2x2x24x24xi1>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x24x2x24xf32>
    %cst_12 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %67 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x2x24x2x24xf32>
    %68 = stablehlo.multiply %66, %67 : tensor<2x2x24x2x24xf32>
    %69 = stablehlo.dot_general %68, %0, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x2x24xf32>, tensor<2x24x2x2x8xf32>) -> tensor<2x2x24x8xf32>
    %70 = stablehlo.transpose %69, dims = [0, 2, 1, 3] : (tensor<2x2x24x8xf32>) -> tensor<2x24x2x8xf32>
    %71 = stablehlo.dot_general %68, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x2x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x2x8xf32>
    %72 = stablehlo.transpose %71, dims = [0, 2, 1, 3, 4] : (tensor<2x2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %73 = stablehlo.reshape %72 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %74 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1, 2, 4] : (tensor<2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %75 = stablehlo.reshape %74 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %76 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1, 2, 4] : (tensor<2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %77 = stablehlo.reshape %76 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %78 = stablehlo.transpose %arg0, dims = [0, 2, 1, 3] : (tensor<2x24x4x8xf32>) -> tensor<2x4x24x8xf32>
    %79 = stablehlo.transpose %75, dims = [0, 2, 1, 3] : (tensor<2x24x4x8xf32>) -> tensor<2x4x24x8xf32>
    %80 = stablehlo.transpose %77, dims = [0, 2, 1, 3] : (tensor<2x24x4x8xf32>) -> tensor<2x4x24x8xf32>
    %81 = stablehlo.dot_general %78, %79, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x24x8xf32>, tensor<2x4x24x8xf32>) -> tensor<2x4x24x24xf32>
    %cst_13 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %82 = stablehlo.sqrt %cst_13 : tensor<f32>
    %83 = stablehlo.convert %82 : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<2x4x24x24xf32>
    %85 = stablehlo.divide %81, %84 : tensor<2x4x24x24xf32>
    %c_14 = stablehlo.constant dense<true> : tensor<i1>
    %86 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i1>) -> tensor<24x24xi1>
    %87 = call @tril_1(%86) : (tensor<24x24xi1>) -> tensor<24x24xi1>
    %cst_15 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %88:2 = call @_where_2(%87, %85, %cst_15) : (tensor<24x24xi1>, tensor<2x4x24x24xf32>, tensor<f32>) -> (tensor<2x4x24x24xf32>, tensor<2x4x24x24xi1>)
    %cst_16 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %89 = stablehlo.reduce(%88#0 init: %cst_16) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x24x24xf32>, tensor<f32>) -> tensor<2x4x24xf32>
    %cst_17 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %90 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x4x24xf32>
    %91 = stablehlo.maximum %90, %89 : tensor<2x4x24xf32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [0, 1, 2] : (tensor<2x4x24xf32>) -> tensor<2x4x24x1xf32>
    %93 = stablehlo.broadcast_in_dim %92, dims = [0, 1, 2, 3] : (tensor<2x4x24x1xf32>) -> tensor<2x4x24x24xf32>
    %94 = stablehlo.subtract %88#0, %93 : tensor<2x4x24x24xf32>
    %95 = stablehlo.exponential %94 : tensor<2x4x24x24xf32>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %96 = stablehlo.reduce(%95 init: %cst_18) applies stablehlo.add across dimensions = [3] : (tensor<2x4x24x24xf32>, tensor<f32>) -> tensor<2x4x24xf32>
    %97 = stablehlo.broadcast_in_dim %96, dims = [0, 1, 2] : (tensor<2x4x24xf32>) -> tensor<2x4x24x1xf32>
    %98 = stablehlo.broadcast_in_dim %97, dims = [0, 1, 2, 3] : (tensor<2x4x24x1xf32>) -> tensor<2x4x24x24xf32>
    %99 = stablehlo.divide %95, %98 : tensor<2x4x24x24xf32>
    %100 = stablehlo.multiply %97, %97 : tensor<2x4x24x1xf32>
    %cst_19 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<2x4x24x1xf32>
    %102 = stablehlo.divide %101, %100 : tensor<2x4x24x1xf32>
    %103 = stablehlo.dot_general %99, %80, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x24x24xf32>, tensor<2x4x24x8xf32>) -> tensor<2x4x24x8xf32>
    %104 = stablehlo.transpose %103, dims = [0, 2, 1, 3] : (tensor<2x4x24x8xf32>) -> tensor<2x24x4x8xf32>
    %105 = stablehlo.transpose %arg3, dims = [0, 2, 1, 3] : (tensor<2x24x4x8xf32>) -> tensor<2x4x24x8xf32>
    %106 = stablehlo.dot_general %105, %99, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x24x8xf32>, tensor<2x4x24x24xf32>) -> tensor<2x4x8x24xf32>
    %107 = stablehlo.transpose %106, dims = [0, 1, 3, 2] : (tensor<2x4x8x24xf32>) -> tensor<2x4x24x8xf32>
    %108 = stablehlo.dot_general %105, %80, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x24x8xf32>, tensor<2x4x24x8xf32>) -> tensor<2x4x24x24xf32>
    %109 = stablehlo.broadcast_in_dim %102, dims = [0, 1, 2, 3] : (tensor<2x4x24x1xf32>) -> tensor<2x4x24x24xf32>
    %110 = stablehlo.multiply %108, %109 : tensor<2x4x24x24xf32>
    %111 = stablehlo.multiply %110, %95 : tensor<2x4x24x24xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %112 = stablehlo.reduce(%111 init: %cst_20) applies stablehlo.add across dimensions = [3] : (tensor<2x4x24x24xf32>, tensor<f32>) -> tensor<2x4x24xf32>
    %113 = stablehlo.reshape %112 : (tensor<2x4x24xf32>) -> tensor<2x4x24x1xf32>
    %114 = stablehlo.negate %113 : tensor<2x4x24x1xf32>
    %115 = stablehlo.broadcast_in_dim %97, dims = [0, 1, 2, 3] : (tensor<2x4x24x1xf32>) -> tensor<2x4x24x24xf32>
    %116 = stablehlo.divide %108, %115 : tensor<2x4x24x24xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %117 = stablehlo.reduce(%114 init: %cst_21) applies stablehlo.add across dimensions = [3] : (tensor<2x4x24x1xf32>, tensor<f32>) -> tensor<2x4x24xf32>
    %118 = stablehlo.broadcast_in_dim %117, dims = [0, 1, 2] : (tensor<2x4x24xf32>) -> tensor<2x4x24x24xf32>
    %119 = stablehlo.add %116, %118 : tensor<2x4x24x24xf32>
    %120 = stablehlo.multiply %119, %95 : tensor<2x4x24x24xf32>
    %121 = call @_where_3(%88#1, %120) : (tensor<2x4x24x24xi1>, tensor<2x4x24x24xf32>) -> tensor<2x4x24x24xf32>
    %122 = stablehlo.broadcast_in_dim %83, dims = [] : (tensor<f32>) -> tensor<2x4x24x24xf32>
    %123 = stablehlo.divide %121, %122 : tensor<2x4x24x24xf32>
    %124 = stablehlo.dot_general %123, %78, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x24x24xf32>, tensor<2x4x24x8xf32>) -> tensor<2x4x24x8xf32>
    %125 = stablehlo.dot_general %123, %79, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x24x24xf32>, tensor<2x4x24x8xf32>) -> tensor<2x4x24x8xf32>
    %126 = stablehlo.transpose %107, dims = [0, 2, 1, 3] : (tensor<2x4x24x8xf32>) -> tensor<2x24x4x8xf32>
    %127 = stablehlo.transpose %124, dims = [0, 2, 1, 3] : (tensor<2x4x24x8xf32>) -> tensor<2x24x4x8xf32>
    %128 = stablehlo.transpose %125, dims = [0, 2, 1, 3] : (tensor<2x4x24x8xf32>) -> tensor<2x24x4x8xf32>
    %129 = stablehlo.reshape %126 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %130 = stablehlo.reduce(%129 init: %cst_22) applies stablehlo.add across dimensions = [3] : (tensor<2x24x2x2x8xf32>, tensor<f32>) -> tensor<2x24x2x8xf32>
    %131 = stablehlo.reshape %127 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %132 = stablehlo.reduce(%131 init: %cst_23) applies stablehlo.add across dimensions = [3] : (tensor<2x24x2x2x8xf32>, tensor<f32>) -> tensor<2x24x2x8xf32>
    %133 = stablehlo.reshape %arg0 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %cst_24 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %134 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<2x24x2x2x8xf32>
    %135 = stablehlo.multiply %133, %134 : tensor<2x24x2x2x8xf32>
    %136 = stablehlo.dot_general %arg1, %135, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x2x8xf32>) -> tensor<2x2x24x24x2xf32>
    %137 = stablehlo.transpose %136, dims = [0, 1, 4, 3, 2] : (tensor<2x2x24x24x2xf32>) -> tensor<2x2x2x24x24xf32>
    %138 = stablehlo.iota dim = 0 : tensor<24xi32>
    %139 = stablehlo.broadcast_in_dim %138, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %140 = stablehlo.broadcast_in_dim %138, dims = [1] : (tensor<24xi32>) -> tensor<1x24xi32>
    %141 = stablehlo.broadcast_in_dim %139, dims = [0, 1] : (tensor<24x1xi32>) -> tensor<24x24xi32>
    %142 = stablehlo.broadcast_in_dim %140, dims = [0, 1] : (tensor<1x24xi32>) -> tensor<24x24xi32>
    %143 = stablehlo.compare GE, %141, %142, SIGNED : (tensor<24x24xi32>, tensor<24x24xi32>) -> tensor<24x24xi1>
    %cst_25 = stablehlo.constant dense<-3.40282347E+38> : tensor<f32>
    %144:2 = call @_where_4(%143, %137, %cst_25) : (tensor<24x24xi1>, tensor<2x2x2x24x24xf32>, tensor<f32>) -> (tensor<2x2x2x24x24xf32>, tensor<2x2x2x24x24xi1>)
    %cst_26 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %145 = stablehlo.reduce(%144#0 init: %cst_26) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %cst_27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %146 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<2x2x2x24xf32>
    %147 = stablehlo.maximum %146, %145 : tensor<2x2x2x24xf32>
    %148 = stablehlo.broadcast_in_dim %147, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %149 = stablehlo.broadcast_in_dim %148, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %150 = stablehlo.subtract %144#0, %149 : tensor<2x2x2x24x24xf32>
    %151 = stablehlo.exponential %150 : tensor<2x2x2x24x24xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %152 = stablehlo.reduce(%151 init: %cst_28) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %153 = stablehlo.broadcast_in_dim %152, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %154 = stablehlo.broadcast_in_dim %153, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %155 = stablehlo.divide %151, %154 : tensor<2x2x2x24x24xf32>
    %156 = stablehlo.multiply %153, %153 : tensor<2x2x2x24x1xf32>
    %cst_29 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %157 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<2x2x2x24x1xf32>
    %158 = stablehlo.divide %157, %156 : tensor<2x2x2x24x1xf32>
    %159 = stablehlo.dot_general %arg2, %155, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x8x2x24xf32>
    %160 = stablehlo.transpose %159, dims = [0, 4, 1, 3, 2] : (tensor<2x2x8x2x24xf32>) -> tensor<2x24x2x2x8xf32>
    %161 = stablehlo.reshape %160 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %162 = stablehlo.reshape %arg3 : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x2x8xf32>
    %163 = stablehlo.transpose %162, dims = [0, 2, 4, 3, 1] : (tensor<2x24x2x2x8xf32>) -> tensor<2x2x8x2x24xf32>
    %164 = stablehlo.dot_general %163, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x2x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x2x24x24xf32>
    %165 = stablehlo.dot_general %163, %155, batching_dims = [0, 1] x [0, 1], contracting_dims = [3, 4] x [2, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x2x24xf32>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %166 = stablehlo.transpose %165, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %167 = stablehlo.broadcast_in_dim %158, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %168 = stablehlo.multiply %164, %167 : tensor<2x2x2x24x24xf32>
    %169 = stablehlo.multiply %168, %151 : tensor<2x2x2x24x24xf32>
    %cst_30 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %170 = stablehlo.reduce(%169 init: %cst_30) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %171 = stablehlo.reshape %170 : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x1xf32>
    %172 = stablehlo.negate %171 : tensor<2x2x2x24x1xf32>
    %173 = stablehlo.broadcast_in_dim %153, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x24x1xf32>) -> tensor<2x2x2x24x24xf32>
    %174 = stablehlo.divide %164, %173 : tensor<2x2x2x24x24xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %175 = stablehlo.reduce(%172 init: %cst_31) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x24x1xf32>, tensor<f32>) -> tensor<2x2x2x24xf32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [0, 1, 2, 3] : (tensor<2x2x2x24xf32>) -> tensor<2x2x2x24x24xf32>
    %177 = stablehlo.add %174, %176 : tensor<2x2x2x24x24xf32>
    %178 = stablehlo.multiply %177, %151 : tensor<2x2x2x24x24xf32>
    %179 = call @_where_5(%144#1, %178) : (tensor<2x2x2x24x24xi1>, tensor<2x2x2x24x24xf32>) -> tensor<2x2x2x24x24xf32>
    %180 = stablehlo.transpose %179, dims = [0, 1, 4, 3, 2] : (tensor<2x2x2x24x24xf32>) -> tensor<2x2x24x24x2xf32>
    %181 = stablehlo.dot_general %180, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x24x2xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x2x8xf32>
    %182 = stablehlo.transpose %181, dims = [0, 2, 1, 3, 4] : (tensor<2x2x24x2x8xf32>) -> tensor<2x24x2x2x8xf32>
    %183 = stablehlo.dot_general %180, %135, batching_dims = [0, 1] x [0, 2], contracting_dims = [3, 4] x [1, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x24x2xf32>, tensor<2x24x2x2x8xf32>) -> tensor<2x2x24x8xf32>
    %184 = stablehlo.transpose %183, dims = [0, 2, 1, 3] : (tensor<2x2x24x8xf32>) -> tensor<2x24x2x8xf32>
    %cst_32 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %185 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<2x24x2x2x8xf32>
    %186 = stablehlo.multiply %182, %185 : tensor<2x24x2x2x8xf32>
    %187 = stablehlo.reshape %186 : (tensor<2x24x2x2x8xf32>) -> tensor<2x24x4x8xf32>
    %188 = stablehlo.slice %arg0 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %189 = stablehlo.dot_general %188, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %cst_33 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %190 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<2x2x24x24xf32>
    %191 = stablehlo.multiply %189, %190 : tensor<2x2x24x24xf32>
    %cst_34 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %192 = stablehlo.reduce(%191 init: %cst_34) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %cst_35 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %193 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<2x2x24xf32>
    %194 = stablehlo.maximum %193, %192 : tensor<2x2x24xf32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %196 = stablehlo.broadcast_in_dim %195, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %197 = stablehlo.subtract %191, %196 : tensor<2x2x24x24xf32>
    %198 = stablehlo.exponential %197 : tensor<2x2x24x24xf32>
    %cst_36 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %199 = stablehlo.reduce(%198 init: %cst_36) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %200 = stablehlo.broadcast_in_dim %199, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %201 = stablehlo.broadcast_in_dim %200, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %202 = stablehlo.divide %198, %201 : tensor<2x2x24x24xf32>
    %203 = stablehlo.dot_general %arg2, %202, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %204 = stablehlo.transpose %203, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %205 = stablehlo.slice %arg3 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %206 = stablehlo.transpose %205, dims = [0, 2, 3, 1] : (tensor<2x24x2x8xf32>) -> tensor<2x2x8x24xf32>
    %207 = stablehlo.dot_general %206, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %208 = stablehlo.dot_general %206, %202, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x24xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %209 = stablehlo.transpose %208, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %210 = stablehlo.multiply %202, %207 : tensor<2x2x24x24xf32>
    %211 = stablehlo.negate %210 : tensor<2x2x24x24xf32>
    %cst_37 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %212 = stablehlo.reduce(%211 init: %cst_37) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %213 = stablehlo.reshape %212 : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %cst_38 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %214 = stablehlo.reduce(%213 init: %cst_38) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x1xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %215 = stablehlo.broadcast_in_dim %214, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x24xf32>
    %216 = stablehlo.multiply %202, %215 : tensor<2x2x24x24xf32>
    %217 = stablehlo.add %210, %216 : tensor<2x2x24x24xf32>
    %cst_39 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %218 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<2x2x24x24xf32>
    %219 = stablehlo.multiply %217, %218 : tensor<2x2x24x24xf32>
    %220 = stablehlo.dot_general %219, %188, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x8xf32>
    %221 = stablehlo.transpose %220, dims = [0, 2, 1, 3] : (tensor<2x2x24x8xf32>) -> tensor<2x24x2x8xf32>
    %222 = stablehlo.dot_general %219, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x8xf32>
    %223 = stablehlo.transpose %222, dims = [0, 2, 1, 3] : (tensor<2x2x24x8xf32>) -> tensor<2x24x2x8xf32>
    %cst_40 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %224 = stablehlo.pad %223, %cst_40, low = [0, 0, 0, 0], high = [0, 0, 2, 0], interior = [0, 0, 0, 0] : (tensor<2x24x2x8xf32>, tensor<f32>) -> tensor<2x24x4x8xf32>
    %225 = stablehlo.slice %arg0 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %226 = stablehlo.dot_general %225, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %cst_41 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %227 = stablehlo.reduce(%226 init: %cst_41) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %228 = stablehlo.broadcast_in_dim %227, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %229 = stablehlo.broadcast_in_dim %228, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %230 = stablehlo.subtract %226, %229 : tensor<2x2x24x24xf32>
    %231 = stablehlo.exponential %230 : tensor<2x2x24x24xf32>
    %cst_42 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %232 = stablehlo.reduce(%231 init: %cst_42) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %233 = stablehlo.broadcast_in_dim %232, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %234 = stablehlo.broadcast_in_dim %233, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %235 = stablehlo.divide %231, %234 : tensor<2x2x24x24xf32>
    %236 = stablehlo.dot_general %arg2, %235, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %237 = stablehlo.transpose %236, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %238 = stablehlo.slice %arg3 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %239 = stablehlo.transpose %238, dims = [0, 2, 3, 1] : (tensor<2x24x2x8xf32>) -> tensor<2x2x8x24xf32>
    %240 = stablehlo.dot_general %239, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %241 = stablehlo.dot_general %239, %235, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x24xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %242 = stablehlo.transpose %241, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %243 = stablehlo.broadcast_in_dim %233, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %244 = stablehlo.divide %240, %243 : tensor<2x2x24x24xf32>
    %245 = stablehlo.multiply %244, %231 : tensor<2x2x24x24xf32>
    %246 = stablehlo.dot_general %245, %225, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x8xf32>
    %247 = stablehlo.transpose %246, dims = [0, 2, 1, 3] : (tensor<2x2x24x8xf32>) -> tensor<2x24x2x8xf32>
    %248 = stablehlo.dot_general %245, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x8xf32>
    %249 = stablehlo.transpose %248, dims = [0, 2, 1, 3] : (tensor<2x2x24x8xf32>) -> tensor<2x24x2x8xf32>
    %cst_43 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %250 = stablehlo.pad %249, %cst_43, low = [0, 0, 0, 0], high = [0, 0, 2, 0], interior = [0, 0, 0, 0] : (tensor<2x24x2x8xf32>, tensor<f32>) -> tensor<2x24x4x8xf32>
    %251 = stablehlo.slice %arg0 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %252 = stablehlo.dot_general %251, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %cst_44 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %253 = stablehlo.reduce(%252 init: %cst_44) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %cst_45 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %254 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<2x2x24xf32>
    %255 = stablehlo.maximum %254, %253 : tensor<2x2x24xf32>
    %256 = stablehlo.broadcast_in_dim %255, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %257 = stablehlo.broadcast_in_dim %256, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %258 = stablehlo.subtract %252, %257 : tensor<2x2x24x24xf32>
    %259 = stablehlo.exponential %258 : tensor<2x2x24x24xf32>
    %cst_46 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %260 = stablehlo.reduce(%259 init: %cst_46) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %261 = stablehlo.broadcast_in_dim %260, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %262 = stablehlo.broadcast_in_dim %261, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %263 = stablehlo.divide %259, %262 : tensor<2x2x24x24xf32>
    %264 = stablehlo.multiply %261, %261 : tensor<2x2x24x1xf32>
    %cst_47 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %265 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<f32>) -> tensor<2x2x24x1xf32>
    %266 = stablehlo.divide %265, %264 : tensor<2x2x24x1xf32>
    %267 = stablehlo.dot_general %arg2, %263, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x24x2x8xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %268 = stablehlo.transpose %267, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %269 = stablehlo.multiply %263, %263 : tensor<2x2x24x24xf32>
    %cst_48 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %270 = stablehlo.reduce(%269 init: %cst_48) applies stablehlo.add across dimensions = [1, 3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x24xf32>
    %271 = stablehlo.broadcast_in_dim %270, dims = [0, 1] : (tensor<2x24xf32>) -> tensor<2x24x1x1xf32>
    %272 = stablehlo.broadcast_in_dim %271, dims = [0, 1, 2, 3] : (tensor<2x24x1x1xf32>) -> tensor<2x24x2x8xf32>
    %273 = stablehlo.multiply %268, %272 : tensor<2x24x2x8xf32>
    %274 = stablehlo.slice %arg3 [0:2, 0:24, 0:2, 0:8] : (tensor<2x24x4x8xf32>) -> tensor<2x24x2x8xf32>
    %275 = stablehlo.multiply %268, %274 : tensor<2x24x2x8xf32>
    %cst_49 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %276 = stablehlo.reduce(%275 init: %cst_49) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x24x2x8xf32>, tensor<f32>) -> tensor<2x24xf32>
    %277 = stablehlo.reshape %276 : (tensor<2x24xf32>) -> tensor<2x24x1x1xf32>
    %278 = stablehlo.broadcast_in_dim %271, dims = [0, 1, 2, 3] : (tensor<2x24x1x1xf32>) -> tensor<2x24x2x8xf32>
    %279 = stablehlo.multiply %274, %278 : tensor<2x24x2x8xf32>
    %cst_50 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %280 = stablehlo.reduce(%277 init: %cst_50) applies stablehlo.add across dimensions = [2, 3] : (tensor<2x24x1x1xf32>, tensor<f32>) -> tensor<2x24xf32>
    %281 = stablehlo.broadcast_in_dim %280, dims = [0, 2] : (tensor<2x24xf32>) -> tensor<2x2x24x24xf32>
    %282 = stablehlo.multiply %263, %281 : tensor<2x2x24x24xf32>
    %283 = stablehlo.multiply %281, %263 : tensor<2x2x24x24xf32>
    %284 = stablehlo.add %282, %283 : tensor<2x2x24x24xf32>
    %285 = stablehlo.transpose %279, dims = [0, 2, 3, 1] : (tensor<2x24x2x8xf32>) -> tensor<2x2x8x24xf32>
    %286 = stablehlo.dot_general %285, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x24xf32>
    %287 = stablehlo.add %284, %286 : tensor<2x2x24x24xf32>
    %288 = stablehlo.dot_general %285, %263, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x24xf32>, tensor<2x2x24x24xf32>) -> tensor<2x2x8x24xf32>
    %289 = stablehlo.transpose %288, dims = [0, 3, 1, 2] : (tensor<2x2x8x24xf32>) -> tensor<2x24x2x8xf32>
    %290 = stablehlo.broadcast_in_dim %266, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %291 = stablehlo.multiply %287, %290 : tensor<2x2x24x24xf32>
    %292 = stablehlo.multiply %291, %259 : tensor<2x2x24x24xf32>
    %cst_51 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %293 = stablehlo.reduce(%292 init: %cst_51) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x24xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %294 = stablehlo.reshape %293 : (tensor<2x2x24xf32>) -> tensor<2x2x24x1xf32>
    %295 = stablehlo.negate %294 : tensor<2x2x24x1xf32>
    %296 = stablehlo.broadcast_in_dim %261, dims = [0, 1, 2, 3] : (tensor<2x2x24x1xf32>) -> tensor<2x2x24x24xf32>
    %297 = stablehlo.divide %287, %296 : tensor<2x2x24x24xf32>
    %cst_52 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %298 = stablehlo.reduce(%295 init: %cst_52) applies stablehlo.add across dimensions = [3] : (tensor<2x2x24x1xf32>, tensor<f32>) -> tensor<2x2x24xf32>
    %299 = stablehlo.broadcast_in_dim %298, dims = [0, 1, 2] : (tensor<2x2x24xf32>) -> tensor<2x2x24x24xf32>
    %300 = stablehlo.add %297, %299 : tensor<2x2x24x24xf32>
    %301 = stablehlo.multiply %300, %259 : tensor<2x2x24x24xf32>
    %302 = stablehlo.dot_general %301, %251, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x8xf32>
    %303 = stablehlo.transpose %302, dims = [0, 2, 1, 3] : (tensor<2x2x24x8xf32>) -> tensor<2x24x2x8xf32>
    %304 = stablehlo.dot_general %301, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x24x24xf32>, tensor<2x24x2x8xf32>) -> tensor<2x2x24x8xf32>
    %305 = stablehlo.transpose %304, dims = [0, 2, 1, 3] : (tensor<2x2x24x8xf32>) -> tensor<2x24x2x8xf32>
    %cst_53 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %306 = stablehlo.pad %305, %cst_53, low = [0, 0, 0, 0], high = [0, 0, 2, 0], interior = [0, 0, 0, 0] : (tensor<2x24x2x8xf32>, tensor<f32>) -> tensor<2x24x4x8xf32>
    return %46, %73, %70, %53, %104, %128, %132, %130, %161, %187, %184, %166, %204, %224, %221, %209, %237, %250, %247, %242, %273, %306, %303, %289 : tensor<2x24x4x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x4x8xf32>, tensor<2x24x2x8xf32>, tensor<2x24x2x8xf32>
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
  func.func private @_where(%arg0: tensor<2x2x24x24xi1>, %arg1: tensor<2x2x24x2x24xf32>, %arg2: tensor<f32>) -> (tensor<2x2x2x24x24xf32>, tensor<2x2x2x24x24xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x2x24x24xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3, 4] : (tensor<2x2x24x24xi1>) -> tensor<2x2x2x24x24xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3, 4] : (tensor<2x2x24x24xf32>) -> tensor<2x2x2x24x24xf32>
    %3 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2, 4] : (tensor<2x2x24x2x24xf32>) -> tensor<2x2x2x24x24xf32>
    %4 = stablehlo.select %1, %3, %2 : tensor<2x2x2x24x24xi1>, tensor<2x2x2x24x24xf32>
    return %4, %1 : tensor<2x2x2x24x24xf32>, tensor<2x2x2x24x24xi1>
  }
  func.func private @_where_0(%arg0: tensor<2x2x2x24x24xi1>, %arg1: tensor<2x2x2x24x24xf32>) -> tensor<2x2x24x2x24xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x2x24x24xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x2x2x24x24xi1>, tensor<2x2x2x24x24xf32>
    %2 = stablehlo.transpose %1, dims = [1, 2, 3, 0, 4] : (tensor<2x2x2x24x24xf32>) -> tensor<2x2x24x2x24xf32>
    return %2 : tensor<2x2x24x2x24xf32>
  }
  func.func private @tril_1(%arg0: tensor<24x24xi1>) -> tensor<24x24xi1> {
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
  func.func private @_where_2(%arg0: tensor<24x24xi1>, %arg1: tensor<2x4x24x24xf32>, %arg2: tensor<f32>) -> (tensor<2x4x24x24xf32>, tensor<2x4x24x24xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<24x24xi1>) -> tensor<2x4x24x24xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x4x24x24xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x4x24x24xi1>, tensor<2x4x24x24xf32>
    return %3, %1 : tensor<2x4x24x24xf32>, tensor<2x4x24x24xi1>
  }
  func.func private @_where_3(%arg0: tensor<2x4x24x24xi1>, %arg1: tensor<2x4x24x24xf32>) -> tensor<2x4x24x24xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x24x24xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x4x24x24xi1>, tensor<2x4x24x24xf32>
    return %1 : tensor<2x4x24x24xf32>
  }
  func.func private @_where_4(%arg0: tensor<24x24xi1>, %arg1: tensor<2x2x2x24x24xf32>, %arg2: tensor<f32>) -> (tensor<2x2x2x24x24xf32>, tensor<2x2x2x24x24xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [3, 4] : (tensor<24x24xi1>) -> tensor<2x2x2x24x24xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x2x2x24x24xf32>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<2x2x2x24x24xi1>, tensor<2x2x2x24x24xf32>
    return %2, %0 : tensor<2x2x2x24x24xf32>, tensor<2x2x2x24x24xi1>
  }
  func.func private @_where_5(%arg0: tensor<2x2x2x24x24xi1>, %arg1: tensor<2x2x2x24x24xf32>) -> tensor<2x2x2x24x24xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x2x24x24xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x2x2x24x24xi1>, tensor<2x2x2x24x24xf32>
    return %1 : tensor<2x2x2x24x24xf32>
  }
}
