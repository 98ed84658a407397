module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x12x8xf32>, %arg1: tensor<2x4x12x8xf32>, %arg2: tensor<2x4x12x8xf32>, %arg3: tensor<1x4x12x12xf32>, %arg4: tensor<2x12xi1>, %arg5: tensor<2x12x4x8xf32>, %arg6: tensor<2x12x2x8xf32>, %arg7: tensor<2x12x2x8xf32>, %arg8: tensor<2x12x4x8xbf16>, %arg9: tensor<2x4x12x8xf32>) -> (tensor<2x12x4x8xf32> {jax.result_info = "result[0]"}, tensor<2x12x4x8xf32> {jax.result_info = "result[1]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[2]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[3]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[4]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[5]"}, tensor<2x12x4x8xbf16> {jax.result_info = "result[6]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[7]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[8]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[9]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[10]"}, tensor<2x12x4x8xf32> {jax.result_info = "result[11]"}, tensor<2x12x4x8xf32> {jax.result_info = "result[12]"}, tensor<2x12x2x8xf32> {jax.result_info = "result[13]"}, tensor<2x12x2x8xf32> {jax.result_info = "result[14]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[15]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[16]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[17]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[18]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[19]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[20]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[21]"}, tensor<2x4x12x8xf32> {jax.result_info = "result[22]"}, tensor<1x4x12x12xf32> {jax.result_info = "result[23]"}) {
    %c = stablehlo.constant dense<true> : tensor<i1>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %1 = call @tril(%0) : (tensor<12x12xi1>) -> tensor<12x12xi1>
    %2 = stablehlo.broadcast_in_dim %arg4, dims = [0, 3] : (tensor<2x12xi1>) -> tensor<2x1x1x12xi1>
    %3 = stablehlo.broadcast_in_dim %1, dims = [2, 3] : (tensor<12x12xi1>) -> tensor<1x1x12x12xi1>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2, 3] : (tensor<1x1x12x12xi1>) -> tensor<2x1x12x12xi1>
    %5 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2, 3] : (tensor<2x1x1x12xi1>) -> tensor<2x1x12x12xi1>
    %6 = stablehlo.and %4, %5 : tensor<2x1x12x12xi1>
    %7 = stablehlo.reshape %arg5 : (tensor<2x12x4x8xf32>) -> tensor<2x12x2x2x8xf32>
    %8 = stablehlo.reshape %arg3 : (tensor<1x4x12x12xf32>) -> tensor<1x2x2x12x12xf32>
    %9 = stablehlo.dot_general %7, %arg6, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x12x2x2x8xf32>, tensor<2x12x2x8xf32>) -> tensor<2x2x12x2x12xf32>
    %cst = stablehlo.constant dense<0.353553385> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x12x2x12xf32>
    %11 = stablehlo.multiply %9, %10 : tensor<2x2x12x2x12xf32>
    %12 = stablehlo.transpose %11, dims = [3, 0, 1, 2, 4] : (tensor<2x2x12x2x12xf32>) -> tensor<2x2x2x12x12xf32>
    %13 = stablehlo.transpose %8, dims = [2, 0, 1, 3, 4] : (tensor<1x2x2x12x12xf32>) -> tensor<2x1x2x12x12xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3, 4] : (tensor<2x1x2x12x12xf32>) -> tensor<2x2x2x12x12xf32>
    %15 = stablehlo.add %12, %14 : tensor<2x2x2x12x12xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %16 = stablehlo.reduce(%15 init: %cst_0) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x12x12xf32>, tensor<f32>) -> tensor<2x2x2x12xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x2x2x12xf32>
    %18 = stablehlo.maximum %17, %16 : tensor<2x2x2x12xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3] : (tensor<2x2x2x12xf32>) -> tensor<2x2x2x12x1xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x12x1xf32>) -> tensor<2x2x2x12x12xf32>
    %21 = stablehlo.subtract %15, %20 : tensor<2x2x2x12x12xf32>
    %22 = stablehlo.exponential %21 : tensor<2x2x2x12x12xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.reduce(%22 init: %cst_2) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x12x12xf32>, tensor<f32>) -> tensor<2x2x2x12xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2, 3] : (tensor<2x2x2x12xf32>) -> tensor<2x2x2x12x1xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x12x1xf32>) -> tensor<2x2x2x12x12xf32>
    %26 = stablehlo.divide %22, %25 : tensor<2x2x2x12x12xf32>
    %27 = stablehlo.dot_general %arg7, %26, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x12x2x8xf32>, tensor<2x2x2x12x12xf32>) -> tensor<2x2x8x2x12xf32>
    %28 = stablehlo.transpose %27, dims = [3, 0, 4, 1, 2] : (tensor<2x2x8x2x12xf32>) -> tensor<2x2x12x2x8xf32>
    %29 = stablehlo.transpose %28, dims = [1, 2, 3, 0, 4] : (tensor<2x2x12x2x8xf32>) -> tensor<2x12x2x2x8xf32>
    %30 = stablehlo.reshape %29 : (tensor<2x12x2x2x8xf32>) -> tensor<2x12x4x8xf32>
    %31 = stablehlo.reshape %arg5 : (tensor<2x12x4x8xf32>) -> tensor<2x12x2x2x8xf32>
    %32 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 3, 4] : (tensor<2x1x12x12xi1>) -> tensor<2x1x1x12x12xi1>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2, 3, 4] : (tensor<2x1x1x12x12xi1>) -> tensor<2x1x2x12x12xi1>
    %34 = stablehlo.dot_general %31, %arg6, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x12x2x2x8xf32>, tensor<2x12x2x8xf32>) -> tensor<2x2x12x2x12xf32>
    %cst_3 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x2x12x2x12xf32>
    %36 = stablehlo.multiply %34, %35 : tensor<2x2x12x2x12xf32>
    %c_4 = stablehlo.constant dense<true> : tensor<i1>
    %37 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i1>) -> tensor<2x2x12x12xi1>
    %38 = stablehlo.broadcast_in_dim %37, dims = [1, 2, 3, 4] : (tensor<2x2x12x12xi1>) -> tensor<1x2x2x12x12xi1>
    %39 = stablehlo.transpose %33, dims = [2, 0, 1, 3, 4] : (tensor<2x1x2x12x12xi1>) -> tensor<2x2x1x12x12xi1>
    %40 = stablehlo.broadcast_in_dim %38, dims = [0, 1, 2, 3, 4] : (tensor<1x2x2x12x12xi1>) -> tensor<2x2x2x12x12xi1>
    %41 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2, 3, 4] : (tensor<2x2x1x12x12xi1>) -> tensor<2x2x2x12x12xi1>
    %42 = stablehlo.and %40, %41 : tensor<2x2x2x12x12xi1>
    %cst_5 = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
    %43 = call @_where(%42, %36, %cst_5) : (tensor<2x2x2x12x12xi1>, tensor<2x2x12x2x12xf32>, tensor<f32>) -> tensor<2x2x2x12x12xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %44 = stablehlo.reduce(%43 init: %cst_6) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x12x12xf32>, tensor<f32>) -> tensor<2x2x2x12xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x2x2x12xf32>
    %46 = stablehlo.maximum %45, %44 : tensor<2x2x2x12xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2, 3] : (tensor<2x2x2x12xf32>) -> tensor<2x2x2x12x1xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x12x1xf32>) -> tensor<2x2x2x12x12xf32>
    %49 = stablehlo.subtract %43, %48 : tensor<2x2x2x12x12xf32>
    %50 = stablehlo.exponential %49 : tensor<2x2x2x12x12xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.reduce(%50 init: %cst_8) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x12x12xf32>, tensor<f32>) -> tensor<2x2x2x12xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2, 3] : (tensor<2x2x2x12xf32>) -> tensor<2x2x2x12x1xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x12x1xf32>) -> tensor<2x2x2x12x12xf32>
    %54 = stablehlo.divide %50, %53 : tensor<2x2x2x12x12xf32>
    %55 = stablehlo.dot_general %arg7, %54, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x12x2x8xf32>, tensor<2x2x2x12x12xf32>) -> tensor<2x2x8x2x12xf32>
    %56 = stablehlo.transpose %55, dims = [3, 0, 4, 1, 2] : (tensor<2x2x8x2x12xf32>) -> tensor<2x2x12x2x8xf32>
    %57 = stablehlo.transpose %56, dims = [1, 2, 3, 0, 4] : (tensor<2x2x12x2x8xf32>) -> tensor<2x12x2x2x8xf32>
    %58 = stablehlo.reshape %57 : (tensor<2x12x2x2x8xf32>) -> tensor<2x12x4x8xf32>
    %59 = stablehlo.broadcast_in_dim %arg4, dims = [0, 3] : (tensor<2x12xi1>) -> tensor<2x1x1x12xi1>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_10 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %60 = call @_where_0(%59, %cst_9, %cst_10) : (tensor<2x1x1x12xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x1x12xf32>
    %61 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_11 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %62 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %63 = stablehlo.multiply %61, %62 : tensor<2x4x12x12xf32>
    %64 = stablehlo.convert %60 : tensor<2x1x1x12xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 1, 2, 3] : (tensor<2x1x1x12xf32>) -> tensor<2x4x12x12xf32>
    %66 = stablehlo.add %63, %65 : tensor<2x4x12x12xf32>
    %cst_12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %67 = stablehlo.reduce(%66 init: %cst_12) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_13 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %69 = stablehlo.maximum %68, %67 : tensor<2x4x12xf32>
    %70 = stablehlo.broadcast_in_dim %69, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %71 = stablehlo.broadcast_in_dim %70, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %72 = stablehlo.subtract %66, %71 : tensor<2x4x12x12xf32>
    %73 = stablehlo.exponential %72 : tensor<2x4x12x12xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %74 = stablehlo.reduce(%73 init: %cst_14) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %75 = stablehlo.broadcast_in_dim %74, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %77 = stablehlo.divide %73, %76 : tensor<2x4x12x12xf32>
    %78 = stablehlo.dot_general %77, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %79 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_15 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %81 = stablehlo.multiply %79, %80 : tensor<2x4x12x12xf32>
    %cst_16 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %82 = call @_where_1(%6, %81, %cst_16) : (tensor<2x1x12x12xi1>, tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12x12xf32>
    %cst_17 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %83 = stablehlo.reduce(%82 init: %cst_17) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_18 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %85 = stablehlo.maximum %84, %83 : tensor<2x4x12xf32>
    %86 = stablehlo.broadcast_in_dim %85, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %88 = stablehlo.subtract %82, %87 : tensor<2x4x12x12xf32>
    %89 = stablehlo.exponential %88 : tensor<2x4x12x12xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %90 = stablehlo.reduce(%89 init: %cst_19) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %93 = stablehlo.divide %89, %92 : tensor<2x4x12x12xf32>
    %94 = stablehlo.dot_general %93, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %95 = stablehlo.dot_general %94, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_20 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %97 = stablehlo.multiply %95, %96 : tensor<2x4x12x12xf32>
    %cst_21 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %98 = call @_where_1(%6, %97, %cst_21) : (tensor<2x1x12x12xi1>, tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12x12xf32>
    %cst_22 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %99 = stablehlo.reduce(%98 init: %cst_22) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_23 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %100 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %101 = stablehlo.maximum %100, %99 : tensor<2x4x12xf32>
    %102 = stablehlo.broadcast_in_dim %101, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %103 = stablehlo.broadcast_in_dim %102, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %104 = stablehlo.subtract %98, %103 : tensor<2x4x12x12xf32>
    %105 = stablehlo.exponential %104 : tensor<2x4x12x12xf32>
    %cst_24 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %106 = stablehlo.reduce(%105 init: %cst_24) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %107 = stablehlo.broadcast_in_dim %106, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %108 = stablehlo.broadcast_in_dim %107, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %109 = stablehlo.divide %105, %108 : tensor<2x4x12x12xf32>
    %110 = stablehlo.dot_general %109, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %111 = stablehlo.broadcast_in_dim %arg4, dims = [0, 2] : (tensor<2x12xi1>) -> tensor<2x1x12x1xi1>
    %112 = stablehlo.convert %111 : (tensor<2x1x12x1xi1>) -> tensor<2x1x12x1xf32>
    %113 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<1x4x12x12xf32>) -> tensor<2x4x12x12xf32>
    %114 = stablehlo.broadcast_in_dim %112, dims = [0, 1, 2, 3] : (tensor<2x1x12x1xf32>) -> tensor<2x4x12x12xf32>
    %115 = stablehlo.add %113, %114 : tensor<2x4x12x12xf32>
    %116 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_25 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %117 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %118 = stablehlo.multiply %116, %117 : tensor<2x4x12x12xf32>
    %119 = stablehlo.add %118, %115 : tensor<2x4x12x12xf32>
    %cst_26 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %120 = call @_where_2(%1, %119, %cst_26) : (tensor<12x12xi1>, tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12x12xf32>
    %cst_27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %121 = stablehlo.reduce(%120 init: %cst_27) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_28 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %122 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %123 = stablehlo.maximum %122, %121 : tensor<2x4x12xf32>
    %124 = stablehlo.broadcast_in_dim %123, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %125 = stablehlo.broadcast_in_dim %124, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %126 = stablehlo.subtract %120, %125 : tensor<2x4x12x12xf32>
    %127 = stablehlo.exponential %126 : tensor<2x4x12x12xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %128 = stablehlo.reduce(%127 init: %cst_29) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %130 = stablehlo.broadcast_in_dim %129, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %131 = stablehlo.divide %127, %130 : tensor<2x4x12x12xf32>
    %132 = stablehlo.dot_general %131, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %133 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_30 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %134 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %135 = stablehlo.multiply %133, %134 : tensor<2x4x12x12xf32>
    %136 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<1x4x12x12xf32>) -> tensor<2x4x12x12xf32>
    %137 = stablehlo.add %135, %136 : tensor<2x4x12x12xf32>
    %cst_31 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %138 = call @_where_1(%6, %137, %cst_31) : (tensor<2x1x12x12xi1>, tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12x12xf32>
    %cst_32 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %139 = stablehlo.reduce(%138 init: %cst_32) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_33 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %140 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %141 = stablehlo.maximum %140, %139 : tensor<2x4x12xf32>
    %142 = stablehlo.broadcast_in_dim %141, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %143 = stablehlo.broadcast_in_dim %142, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %144 = stablehlo.subtract %138, %143 : tensor<2x4x12x12xf32>
    %145 = stablehlo.exponential %144 : tensor<2x4x12x12xf32>
    %cst_34 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %146 = stablehlo.reduce(%145 init: %cst_34) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %147 = stablehlo.broadcast_in_dim %146, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %148 = stablehlo.broadcast_in_dim %147, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %149 = stablehlo.divide %145, %148 : tensor<2x4x12x12xf32>
    %150 = stablehlo.dot_general %149, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %151 = stablehlo.reshape %arg8 : (tensor<2x12x4x8xbf16>) -> tensor<2x12x4x1x8xbf16>
    %152 = stablehlo.reshape %arg3 : (tensor<1x4x12x12xf32>) -> tensor<1x4x1x12x12xf32>
    %153 = stablehlo.dot_general %151, %arg8, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x12x4x1x8xbf16>, tensor<2x12x4x8xbf16>) -> tensor<2x4x12x1x12xf32>
    %cst_35 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %154 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<2x4x12x1x12xf32>
    %155 = stablehlo.multiply %153, %154 : tensor<2x4x12x1x12xf32>
    %156 = stablehlo.transpose %155, dims = [3, 0, 1, 2, 4] : (tensor<2x4x12x1x12xf32>) -> tensor<1x2x4x12x12xf32>
    %157 = stablehlo.transpose %152, dims = [2, 0, 1, 3, 4] : (tensor<1x4x1x12x12xf32>) -> tensor<1x1x4x12x12xf32>
    %158 = stablehlo.broadcast_in_dim %157, dims = [0, 1, 2, 3, 4] : (tensor<1x1x4x12x12xf32>) -> tensor<1x2x4x12x12xf32>
    %159 = stablehlo.add %156, %158 : tensor<1x2x4x12x12xf32>
    %c_36 = stablehlo.constant dense<true> : tensor<i1>
    %160 = stablehlo.broadcast_in_dim %c_36, dims = [] : (tensor<i1>) -> tensor<2x4x12x12xi1>
    %c_37 = stablehlo.constant dense<true> : tensor<i1>
    %161 = stablehlo.broadcast_in_dim %c_37, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %162 = call @tril_3(%161) : (tensor<12x12xi1>) -> tensor<12x12xi1>
    %163 = stablehlo.broadcast_in_dim %162, dims = [2, 3] : (tensor<12x12xi1>) -> tensor<1x1x12x12xi1>
    %164 = stablehlo.broadcast_in_dim %163, dims = [0, 1, 2, 3] : (tensor<1x1x12x12xi1>) -> tensor<2x4x12x12xi1>
    %165 = stablehlo.and %160, %164 : tensor<2x4x12x12xi1>
    %cst_38 = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
    %166 = call @_where_4(%165, %159, %cst_38) : (tensor<2x4x12x12xi1>, tensor<1x2x4x12x12xf32>, tensor<f32>) -> tensor<1x2x4x12x12xf32>
    %cst_39 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %167 = stablehlo.reduce(%166 init: %cst_39) applies stablehlo.maximum across dimensions = [4] : (tensor<1x2x4x12x12xf32>, tensor<f32>) -> tensor<1x2x4x12xf32>
    %cst_40 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %168 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<1x2x4x12xf32>
    %169 = stablehlo.maximum %168, %167 : tensor<1x2x4x12xf32>
    %170 = stablehlo.broadcast_in_dim %169, dims = [0, 1, 2, 3] : (tensor<1x2x4x12xf32>) -> tensor<1x2x4x12x1xf32>
    %171 = stablehlo.broadcast_in_dim %170, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x12x1xf32>) -> tensor<1x2x4x12x12xf32>
    %172 = stablehlo.subtract %166, %171 : tensor<1x2x4x12x12xf32>
    %173 = stablehlo.exponential %172 : tensor<1x2x4x12x12xf32>
    %cst_41 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %174 = stablehlo.reduce(%173 init: %cst_41) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x12x12xf32>, tensor<f32>) -> tensor<1x2x4x12xf32>
    %175 = stablehlo.broadcast_in_dim %174, dims = [0, 1, 2, 3] : (tensor<1x2x4x12xf32>) -> tensor<1x2x4x12x1xf32>
    %176 = stablehlo.broadcast_in_dim %175, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x12x1xf32>) -> tensor<1x2x4x12x12xf32>
    %177 = stablehlo.divide %173, %176 : tensor<1x2x4x12x12xf32>
    %178 = stablehlo.convert %177 : (tensor<1x2x4x12x12xf32>) -> tensor<1x2x4x12x12xbf16>
    %179 = stablehlo.dot_general %arg8, %178, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x12x4x8xbf16>, tensor<1x2x4x12x12xbf16>) -> tensor<2x4x8x1x12xbf16>
    %180 = stablehlo.transpose %179, dims = [3, 0, 4, 1, 2] : (tensor<2x4x8x1x12xbf16>) -> tensor<1x2x12x4x8xbf16>
    %181 = stablehlo.transpose %180, dims = [1, 2, 3, 0, 4] : (tensor<1x2x12x4x8xbf16>) -> tensor<2x12x4x1x8xbf16>
    %182 = stablehlo.reshape %181 : (tensor<2x12x4x1x8xbf16>) -> tensor<2x12x4x8xbf16>
    %183 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_42 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %184 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %185 = stablehlo.multiply %183, %184 : tensor<2x4x12x12xf32>
    %186 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<1x4x12x12xf32>) -> tensor<2x4x12x12xf32>
    %187 = stablehlo.add %185, %186 : tensor<2x4x12x12xf32>
    %cst_43 = stablehlo.constant dense<-1.000000e+10> : tensor<f32>
    %188:2 = call @_where_5(%6, %187, %cst_43) : (tensor<2x1x12x12xi1>, tensor<2x4x12x12xf32>, tensor<f32>) -> (tensor<2x4x12x12xf32>, tensor<2x4x12x12xi1>)
    %cst_44 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %189 = stablehlo.reduce(%188#0 init: %cst_44) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_45 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %190 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %191 = stablehlo.maximum %190, %189 : tensor<2x4x12xf32>
    %192 = stablehlo.broadcast_in_dim %191, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %193 = stablehlo.broadcast_in_dim %192, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %194 = stablehlo.subtract %188#0, %193 : tensor<2x4x12x12xf32>
    %195 = stablehlo.exponential %194 : tensor<2x4x12x12xf32>
    %cst_46 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %196 = stablehlo.reduce(%195 init: %cst_46) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %197 = stablehlo.broadcast_in_dim %196, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %198 = stablehlo.broadcast_in_dim %197, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %199 = stablehlo.divide %195, %198 : tensor<2x4x12x12xf32>
    %200 = stablehlo.multiply %197, %197 : tensor<2x4x12x1xf32>
    %cst_47 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %201 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<f32>) -> tensor<2x4x12x1xf32>
    %202 = stablehlo.divide %201, %200 : tensor<2x4x12x1xf32>
    %203 = stablehlo.dot_general %199, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %204 = stablehlo.dot_general %arg9, %199, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x12xf32>) -> tensor<2x4x8x12xf32>
    %205 = stablehlo.transpose %204, dims = [0, 1, 3, 2] : (tensor<2x4x8x12xf32>) -> tensor<2x4x12x8xf32>
    %206 = stablehlo.dot_general %arg9, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %207 = stablehlo.broadcast_in_dim %202, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %208 = stablehlo.multiply %206, %207 : tensor<2x4x12x12xf32>
    %209 = stablehlo.multiply %208, %195 : tensor<2x4x12x12xf32>
    %cst_48 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %210 = stablehlo.reduce(%209 init: %cst_48) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %211 = stablehlo.reshape %210 : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %212 = stablehlo.negate %211 : tensor<2x4x12x1xf32>
    %213 = stablehlo.broadcast_in_dim %197, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %214 = stablehlo.divide %206, %213 : tensor<2x4x12x12xf32>
    %cst_49 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %215 = stablehlo.reduce(%212 init: %cst_49) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x1xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %216 = stablehlo.broadcast_in_dim %215, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x12xf32>
    %217 = stablehlo.add %214, %216 : tensor<2x4x12x12xf32>
    %218 = stablehlo.multiply %217, %195 : tensor<2x4x12x12xf32>
    %219 = call @_where_6(%188#1, %218) : (tensor<2x4x12x12xi1>, tensor<2x4x12x12xf32>) -> tensor<2x4x12x12xf32>
    %cst_50 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %220 = stablehlo.broadcast_in_dim %cst_50, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %221 = stablehlo.multiply %219, %220 : tensor<2x4x12x12xf32>
    %222 = stablehlo.dot_general %221, %arg0, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %223 = stablehlo.dot_general %221, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %224 = stablehlo.reshape %arg5 : (tensor<2x12x4x8xf32>) -> tensor<2x12x2x2x8xf32>
    %225 = stablehlo.reshape %arg3 : (tensor<1x4x12x12xf32>) -> tensor<1x2x2x12x12xf32>
    %226 = stablehlo.dot_general %224, %arg6, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x12x2x2x8xf32>, tensor<2x12x2x8xf32>) -> tensor<2x2x12x2x12xf32>
    %cst_51 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %227 = stablehlo.broadcast_in_dim %cst_51, dims = [] : (tensor<f32>) -> tensor<2x2x12x2x12xf32>
    %228 = stablehlo.multiply %226, %227 : tensor<2x2x12x2x12xf32>
    %229 = stablehlo.transpose %228, dims = [3, 0, 1, 2, 4] : (tensor<2x2x12x2x12xf32>) -> tensor<2x2x2x12x12xf32>
    %230 = stablehlo.transpose %225, dims = [2, 0, 1, 3, 4] : (tensor<1x2x2x12x12xf32>) -> tensor<2x1x2x12x12xf32>
    %231 = stablehlo.broadcast_in_dim %230, dims = [0, 1, 2, 3, 4] : (tensor<2x1x2x12x12xf32>) -> tensor<2x2x2x12x12xf32>
    %232 = stablehlo.add %229, %231 : tensor<2x2x2x12x12xf32>
    %c_52 = stablehlo.constant dense<true> : tensor<i1>
    %233 = stablehlo.broadcast_in_dim %c_52, dims = [] : (tensor<i1>) -> tensor<2x2x12x12xi1>
    %c_53 = stablehlo.constant dense<true> : tensor<i1>
    %234 = stablehlo.broadcast_in_dim %c_53, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %235 = call @tril_7(%234) : (tensor<12x12xi1>) -> tensor<12x12xi1>
    %236 = stablehlo.broadcast_in_dim %235, dims = [2, 3] : (tensor<12x12xi1>) -> tensor<1x1x12x12xi1>
    %237 = stablehlo.broadcast_in_dim %236, dims = [0, 1, 2, 3] : (tensor<1x1x12x12xi1>) -> tensor<2x2x12x12xi1>
    %238 = stablehlo.and %233, %237 : tensor<2x2x12x12xi1>
    %cst_54 = stablehlo.constant dense<-2.38197633E+38> : tensor<f32>
    %239:2 = call @_where_8(%238, %232, %cst_54) : (tensor<2x2x12x12xi1>, tensor<2x2x2x12x12xf32>, tensor<f32>) -> (tensor<2x2x2x12x12xf32>, tensor<2x2x2x12x12xi1>)
    %cst_55 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %240 = stablehlo.reduce(%239#0 init: %cst_55) applies stablehlo.maximum across dimensions = [4] : (tensor<2x2x2x12x12xf32>, tensor<f32>) -> tensor<2x2x2x12xf32>
    %cst_56 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %241 = stablehlo.broadcast_in_dim %cst_56, dims = [] : (tensor<f32>) -> tensor<2x2x2x12xf32>
    %242 = stablehlo.maximum %241, %240 : tensor<2x2x2x12xf32>
    %243 = stablehlo.broadcast_in_dim %242, dims = [0, 1, 2, 3] : (tensor<2x2x2x12xf32>) -> tensor<2x2x2x12x1xf32>
    %244 = stablehlo.broadcast_in_dim %243, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x12x1xf32>) -> tensor<2x2x2x12x12xf32>
    %245 = stablehlo.subtract %239#0, %244 : tensor<2x2x2x12x12xf32>
    %246 = stablehlo.exponential %245 : tensor<2x2x2x12x12xf32>
    %cst_57 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %247 = stablehlo.reduce(%246 init: %cst_57) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x12x12xf32>, tensor<f32>) -> tensor<2x2x2x12xf32>
    %248 = stablehlo.broadcast_in_dim %247, dims = [0, 1, 2, 3] : (tensor<2x2x2x12xf32>) -> tensor<2x2x2x12x1xf32>
    %249 = stablehlo.broadcast_in_dim %248, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x12x1xf32>) -> tensor<2x2x2x12x12xf32>
    %250 = stablehlo.divide %246, %249 : tensor<2x2x2x12x12xf32>
    %251 = stablehlo.multiply %248, %248 : tensor<2x2x2x12x1xf32>
    %cst_58 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %252 = stablehlo.broadcast_in_dim %cst_58, dims = [] : (tensor<f32>) -> tensor<2x2x2x12x1xf32>
    %253 = stablehlo.divide %252, %251 : tensor<2x2x2x12x1xf32>
    %254 = stablehlo.dot_general %arg7, %250, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x12x2x8xf32>, tensor<2x2x2x12x12xf32>) -> tensor<2x2x8x2x12xf32>
    %255 = stablehlo.transpose %254, dims = [3, 0, 4, 1, 2] : (tensor<2x2x8x2x12xf32>) -> tensor<2x2x12x2x8xf32>
    %256 = stablehlo.transpose %255, dims = [1, 2, 3, 0, 4] : (tensor<2x2x12x2x8xf32>) -> tensor<2x12x2x2x8xf32>
    %257 = stablehlo.reshape %256 : (tensor<2x12x2x2x8xf32>) -> tensor<2x12x4x8xf32>
    %258 = stablehlo.reshape %arg5 : (tensor<2x12x4x8xf32>) -> tensor<2x12x2x2x8xf32>
    %259 = stablehlo.transpose %258, dims = [3, 0, 1, 2, 4] : (tensor<2x12x2x2x8xf32>) -> tensor<2x2x12x2x8xf32>
    %260 = stablehlo.transpose %259, dims = [1, 3, 4, 0, 2] : (tensor<2x2x12x2x8xf32>) -> tensor<2x2x8x2x12xf32>
    %261 = stablehlo.dot_general %260, %arg7, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x2x12xf32>, tensor<2x12x2x8xf32>) -> tensor<2x2x2x12x12xf32>
    %262 = stablehlo.transpose %261, dims = [2, 0, 1, 3, 4] : (tensor<2x2x2x12x12xf32>) -> tensor<2x2x2x12x12xf32>
    %263 = stablehlo.dot_general %260, %250, batching_dims = [0, 1] x [1, 2], contracting_dims = [3, 4] x [0, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x8x2x12xf32>, tensor<2x2x2x12x12xf32>) -> tensor<2x2x8x12xf32>
    %264 = stablehlo.transpose %263, dims = [0, 3, 1, 2] : (tensor<2x2x8x12xf32>) -> tensor<2x12x2x8xf32>
    %265 = stablehlo.broadcast_in_dim %253, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x12x1xf32>) -> tensor<2x2x2x12x12xf32>
    %266 = stablehlo.multiply %262, %265 : tensor<2x2x2x12x12xf32>
    %267 = stablehlo.multiply %266, %246 : tensor<2x2x2x12x12xf32>
    %cst_59 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %268 = stablehlo.reduce(%267 init: %cst_59) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x12x12xf32>, tensor<f32>) -> tensor<2x2x2x12xf32>
    %269 = stablehlo.reshape %268 : (tensor<2x2x2x12xf32>) -> tensor<2x2x2x12x1xf32>
    %270 = stablehlo.negate %269 : tensor<2x2x2x12x1xf32>
    %271 = stablehlo.broadcast_in_dim %248, dims = [0, 1, 2, 3, 4] : (tensor<2x2x2x12x1xf32>) -> tensor<2x2x2x12x12xf32>
    %272 = stablehlo.divide %262, %271 : tensor<2x2x2x12x12xf32>
    %cst_60 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %273 = stablehlo.reduce(%270 init: %cst_60) applies stablehlo.add across dimensions = [4] : (tensor<2x2x2x12x1xf32>, tensor<f32>) -> tensor<2x2x2x12xf32>
    %274 = stablehlo.broadcast_in_dim %273, dims = [0, 1, 2, 3] : (tensor<2x2x2x12xf32>) -> tensor<2x2x2x12x12xf32>
    %275 = stablehlo.add %272, %274 : tensor<2x2x2x12x12xf32>
    %276 = stablehlo.multiply %275, %246 : tensor<2x2x2x12x12xf32>
    %277 = call @_where_9(%239#1, %276) : (tensor<2x2x2x12x12xi1>, tensor<2x2x2x12x12xf32>) -> tensor<2x2x2x12x12xf32>
    %278 = stablehlo.transpose %277, dims = [1, 2, 3, 0, 4] : (tensor<2x2x2x12x12xf32>) -> tensor<2x2x12x2x12xf32>
    %cst_61 = stablehlo.constant dense<0.353553385> : tensor<f32>
    %279 = stablehlo.broadcast_in_dim %cst_61, dims = [] : (tensor<f32>) -> tensor<2x2x12x2x12xf32>
    %280 = stablehlo.multiply %278, %279 : tensor<2x2x12x2x12xf32>
    %281 = stablehlo.dot_general %280, %224, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x12x2x12xf32>, tensor<2x12x2x2x8xf32>) -> tensor<2x2x12x8xf32>
    %282 = stablehlo.transpose %281, dims = [0, 2, 1, 3] : (tensor<2x2x12x8xf32>) -> tensor<2x12x2x8xf32>
    %283 = stablehlo.dot_general %280, %arg6, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x2x12x2x12xf32>, tensor<2x12x2x8xf32>) -> tensor<2x2x12x2x8xf32>
    %284 = stablehlo.transpose %283, dims = [0, 2, 1, 3, 4] : (tensor<2x2x12x2x8xf32>) -> tensor<2x12x2x2x8xf32>
    %285 = stablehlo.reshape %284 : (tensor<2x12x2x2x8xf32>) -> tensor<2x12x4x8xf32>
    %286 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_62 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %287 = stablehlo.broadcast_in_dim %cst_62, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %288 = stablehlo.multiply %286, %287 : tensor<2x4x12x12xf32>
    %289 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<1x4x12x12xf32>) -> tensor<2x4x12x12xf32>
    %290 = stablehlo.add %288, %289 : tensor<2x4x12x12xf32>
    %cst_63 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %291 = stablehlo.broadcast_in_dim %cst_63, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %292 = stablehlo.multiply %290, %291 : tensor<2x4x12x12xf32>
    %cst_64 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %293 = stablehlo.reduce(%292 init: %cst_64) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_65 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %294 = stablehlo.broadcast_in_dim %cst_65, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %295 = stablehlo.maximum %294, %293 : tensor<2x4x12xf32>
    %296 = stablehlo.broadcast_in_dim %295, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %297 = stablehlo.broadcast_in_dim %296, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %298 = stablehlo.subtract %292, %297 : tensor<2x4x12x12xf32>
    %299 = stablehlo.exponential %298 : tensor<2x4x12x12xf32>
    %cst_66 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %300 = stablehlo.reduce(%299 init: %cst_66) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %301 = stablehlo.broadcast_in_dim %300, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %302 = stablehlo.broadcast_in_dim %301, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %303 = stablehlo.divide %299, %302 : tensor<2x4x12x12xf32>
    %304 = stablehlo.dot_general %303, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %305 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_67 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %306 = stablehlo.broadcast_in_dim %cst_67, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %307 = stablehlo.multiply %305, %306 : tensor<2x4x12x12xf32>
    %cst_68 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %308 = stablehlo.broadcast_in_dim %cst_68, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %309 = stablehlo.add %307, %308 : tensor<2x4x12x12xf32>
    %cst_69 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %310 = stablehlo.reduce(%309 init: %cst_69) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_70 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %311 = stablehlo.broadcast_in_dim %cst_70, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %312 = stablehlo.maximum %311, %310 : tensor<2x4x12xf32>
    %313 = stablehlo.broadcast_in_dim %312, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %314 = stablehlo.broadcast_in_dim %313, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %315 = stablehlo.subtract %309, %314 : tensor<2x4x12x12xf32>
    %316 = stablehlo.exponential %315 : tensor<2x4x12x12xf32>
    %cst_71 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %317 = stablehlo.reduce(%316 init: %cst_71) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %318 = stablehlo.broadcast_in_dim %317, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %319 = stablehlo.broadcast_in_dim %318, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %320 = stablehlo.divide %316, %319 : tensor<2x4x12x12xf32>
    %321 = stablehlo.dot_general %320, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %cst_72 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_73 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %322 = call @_where_10(%6, %cst_72, %cst_73) : (tensor<2x1x12x12xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x12x12xf32>
    %323 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_74 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %324 = stablehlo.broadcast_in_dim %cst_74, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %325 = stablehlo.multiply %323, %324 : tensor<2x4x12x12xf32>
    %326 = stablehlo.convert %322 : tensor<2x1x12x12xf32>
    %327 = stablehlo.broadcast_in_dim %326, dims = [0, 1, 2, 3] : (tensor<2x1x12x12xf32>) -> tensor<2x4x12x12xf32>
    %328 = stablehlo.add %325, %327 : tensor<2x4x12x12xf32>
    %cst_75 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %329 = stablehlo.reduce(%328 init: %cst_75) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_76 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %330 = stablehlo.broadcast_in_dim %cst_76, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %331 = stablehlo.maximum %330, %329 : tensor<2x4x12xf32>
    %332 = stablehlo.broadcast_in_dim %331, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %333 = stablehlo.broadcast_in_dim %332, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %334 = stablehlo.subtract %328, %333 : tensor<2x4x12x12xf32>
    %335 = stablehlo.exponential %334 : tensor<2x4x12x12xf32>
    %cst_77 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %336 = stablehlo.reduce(%335 init: %cst_77) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %337 = stablehlo.broadcast_in_dim %336, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %338 = stablehlo.broadcast_in_dim %337, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %339 = stablehlo.divide %335, %338 : tensor<2x4x12x12xf32>
    %340 = stablehlo.multiply %337, %337 : tensor<2x4x12x1xf32>
    %cst_78 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %341 = stablehlo.broadcast_in_dim %cst_78, dims = [] : (tensor<f32>) -> tensor<2x4x12x1xf32>
    %342 = stablehlo.divide %341, %340 : tensor<2x4x12x1xf32>
    %343 = stablehlo.dot_general %339, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %344 = stablehlo.dot_general %arg9, %339, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x12xf32>) -> tensor<2x4x8x12xf32>
    %345 = stablehlo.transpose %344, dims = [0, 1, 3, 2] : (tensor<2x4x8x12xf32>) -> tensor<2x4x12x8xf32>
    %346 = stablehlo.dot_general %arg9, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %347 = stablehlo.broadcast_in_dim %342, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %348 = stablehlo.multiply %346, %347 : tensor<2x4x12x12xf32>
    %349 = stablehlo.multiply %348, %335 : tensor<2x4x12x12xf32>
    %cst_79 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %350 = stablehlo.reduce(%349 init: %cst_79) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %351 = stablehlo.reshape %350 : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %352 = stablehlo.negate %351 : tensor<2x4x12x1xf32>
    %353 = stablehlo.broadcast_in_dim %337, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %354 = stablehlo.divide %346, %353 : tensor<2x4x12x12xf32>
    %cst_80 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %355 = stablehlo.reduce(%352 init: %cst_80) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x1xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %356 = stablehlo.broadcast_in_dim %355, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x12xf32>
    %357 = stablehlo.add %354, %356 : tensor<2x4x12x12xf32>
    %358 = stablehlo.multiply %357, %335 : tensor<2x4x12x12xf32>
    %cst_81 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %359 = stablehlo.broadcast_in_dim %cst_81, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %360 = stablehlo.multiply %358, %359 : tensor<2x4x12x12xf32>
    %361 = stablehlo.dot_general %360, %arg0, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %362 = stablehlo.dot_general %360, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %363 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %cst_82 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %364 = stablehlo.broadcast_in_dim %cst_82, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %365 = stablehlo.multiply %363, %364 : tensor<2x4x12x12xf32>
    %366 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2, 3] : (tensor<1x4x12x12xf32>) -> tensor<2x4x12x12xf32>
    %367 = stablehlo.add %365, %366 : tensor<2x4x12x12xf32>
    %cst_83 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %368 = stablehlo.reduce(%367 init: %cst_83) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %cst_84 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %369 = stablehlo.broadcast_in_dim %cst_84, dims = [] : (tensor<f32>) -> tensor<2x4x12xf32>
    %370 = stablehlo.maximum %369, %368 : tensor<2x4x12xf32>
    %371 = stablehlo.broadcast_in_dim %370, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %372 = stablehlo.broadcast_in_dim %371, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %373 = stablehlo.subtract %367, %372 : tensor<2x4x12x12xf32>
    %374 = stablehlo.exponential %373 : tensor<2x4x12x12xf32>
    %cst_85 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %375 = stablehlo.reduce(%374 init: %cst_85) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %376 = stablehlo.broadcast_in_dim %375, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %377 = stablehlo.broadcast_in_dim %376, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %378 = stablehlo.divide %374, %377 : tensor<2x4x12x12xf32>
    %379 = stablehlo.multiply %376, %376 : tensor<2x4x12x1xf32>
    %cst_86 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %380 = stablehlo.broadcast_in_dim %cst_86, dims = [] : (tensor<f32>) -> tensor<2x4x12x1xf32>
    %381 = stablehlo.divide %380, %379 : tensor<2x4x12x1xf32>
    %382 = stablehlo.dot_general %378, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    %383 = stablehlo.dot_general %arg9, %arg2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x12xf32>
    %384 = stablehlo.broadcast_in_dim %381, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %385 = stablehlo.multiply %383, %384 : tensor<2x4x12x12xf32>
    %386 = stablehlo.multiply %385, %374 : tensor<2x4x12x12xf32>
    %cst_87 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %387 = stablehlo.reduce(%386 init: %cst_87) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %388 = stablehlo.reshape %387 : (tensor<2x4x12xf32>) -> tensor<2x4x12x1xf32>
    %389 = stablehlo.negate %388 : tensor<2x4x12x1xf32>
    %390 = stablehlo.broadcast_in_dim %376, dims = [0, 1, 2, 3] : (tensor<2x4x12x1xf32>) -> tensor<2x4x12x12xf32>
    %391 = stablehlo.divide %383, %390 : tensor<2x4x12x12xf32>
    %cst_88 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %392 = stablehlo.reduce(%389 init: %cst_88) applies stablehlo.add across dimensions = [3] : (tensor<2x4x12x1xf32>, tensor<f32>) -> tensor<2x4x12xf32>
    %393 = stablehlo.broadcast_in_dim %392, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12x12xf32>
    %394 = stablehlo.add %391, %393 : tensor<2x4x12x12xf32>
    %395 = stablehlo.multiply %394, %374 : tensor<2x4x12x12xf32>
    %cst_89 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %396 = stablehlo.reduce(%395 init: %cst_89) applies stablehlo.add across dimensions = [0] : (tensor<2x4x12x12xf32>, tensor<f32>) -> tensor<4x12x12xf32>
    %397 = stablehlo.reshape %396 : (tensor<4x12x12xf32>) -> tensor<1x4x12x12xf32>
    %cst_90 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %398 = stablehlo.broadcast_in_dim %cst_90, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %399 = stablehlo.multiply %395, %398 : tensor<2x4x12x12xf32>
    %400 = stablehlo.dot_general %399, %arg1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x4x12x12xf32>, tensor<2x4x12x8xf32>) -> tensor<2x4x12x8xf32>
    return %30, %58, %78, %110, %132, %150, %182, %203, %223, %222, %205, %257, %285, %282, %264, %304, %321, %343, %362, %361, %345, %382, %400, %397 : tensor<2x12x4x8xf32>, tensor<2x12x4x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x12x4x8xbf16>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x12x4x8xf32>, tensor<2x12x4x8xf32>, tensor<2x12x2x8xf32>, tensor<2x12x2x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<2x4x12x8xf32>, tensor<1x4x12x12xf32>
  }
  func.func private @tril(%arg0: tensor<12x12xi1>) -> tensor<12x12xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<12x12xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<12x12xi32>
    %2 = stablehlo.add %0, %1 : tensor<12x12xi32>
    %3 = stablehlo.iota dim = 1 : tensor<12x12xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<12x12xi32>, tensor<12x12xi32>) -> tensor<12x12xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<12x12xi1>, tensor<12x12xi1>
    return %6 : tensor<12x12xi1>
  }
  func.func private @_where(%arg0: tensor<2x2x2x12x12xi1>, %arg1: tensor<2x2x12x2x12xf32>, %arg2: tensor<f32>) -> tensor<2x2x2x12x12xf32> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x2x12x12xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3, 4] : (tensor<2x2x12x12xf32>) -> tensor<2x2x2x12x12xf32>
    %2 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2, 4] : (tensor<2x2x12x2x12xf32>) -> tensor<2x2x2x12x12xf32>
    %3 = stablehlo.select %arg0, %2, %1 : tensor<2x2x2x12x12xi1>, tensor<2x2x2x12x12xf32>
    return %3 : tensor<2x2x2x12x12xf32>
  }
  func.func private @_where_0(%arg0: tensor<2x1x1x12xi1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<2x1x1x12xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x1x1x12xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x1x1x12xf32>
    %2 = stablehlo.select %arg0, %0, %1 : tensor<2x1x1x12xi1>, tensor<2x1x1x12xf32>
    return %2 : tensor<2x1x1x12xf32>
  }
  func.func private @_where_1(%arg0: tensor<2x1x12x12xi1>, %arg1: tensor<2x4x12x12xf32>, %arg2: tensor<f32>) -> tensor<2x4x12x12xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 2, 3] : (tensor<2x1x12x12xi1>) -> tensor<2x4x12x12xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x4x12x12xi1>, tensor<2x4x12x12xf32>
    return %3 : tensor<2x4x12x12xf32>
  }
  func.func private @_where_2(%arg0: tensor<12x12xi1>, %arg1: tensor<2x4x12x12xf32>, %arg2: tensor<f32>) -> tensor<2x4x12x12xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<12x12xi1>) -> tensor<2x4x12x12xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x4x12x12xi1>, tensor<2x4x12x12xf32>
    return %3 : tensor<2x4x12x12xf32>
  }
  func.func private @tril_3(%arg0: tensor<12x12xi1>) -> tensor<12x12xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<12x12xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<12x12xi32>
    %2 = stablehlo.add %0, %1 : tensor<12x12xi32>
    %3 = stablehlo.iota dim = 1 : tensor<12x12xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<12x12xi32>, tensor<12x12xi32>) -> tensor<12x12xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<12x12xi1>, tensor<12x12xi1>
    return %6 : tensor<12x12xi1>
  }
  func.func private @_where_4(%arg0: tensor<2x4x12x12xi1>, %arg1: tensor<1x2x4x12x12xf32>, %arg2: tensor<f32>) -> tensor<1x2x4x12x12xf32> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3, 4] : (tensor<2x4x12x12xi1>) -> tensor<1x2x4x12x12xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3, 4] : (tensor<2x4x12x12xf32>) -> tensor<1x2x4x12x12xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<1x2x4x12x12xi1>, tensor<1x2x4x12x12xf32>
    return %3 : tensor<1x2x4x12x12xf32>
  }
  func.func private @_where_5(%arg0: tensor<2x1x12x12xi1>, %arg1: tensor<2x4x12x12xf32>, %arg2: tensor<f32>) -> (tensor<2x4x12x12xf32>, tensor<2x4x12x12xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 2, 3] : (tensor<2x1x12x12xi1>) -> tensor<2x4x12x12xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x4x12x12xi1>, tensor<2x4x12x12xf32>
    return %3, %1 : tensor<2x4x12x12xf32>, tensor<2x4x12x12xi1>
  }
  func.func private @_where_6(%arg0: tensor<2x4x12x12xi1>, %arg1: tensor<2x4x12x12xf32>) -> tensor<2x4x12x12xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x12x12xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x4x12x12xi1>, tensor<2x4x12x12xf32>
    return %1 : tensor<2x4x12x12xf32>
  }
  func.func private @tril_7(%arg0: tensor<12x12xi1>) -> tensor<12x12xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<12x12xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<12x12xi32>
    %2 = stablehlo.add %0, %1 : tensor<12x12xi32>
    %3 = stablehlo.iota dim = 1 : tensor<12x12xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<12x12xi32>, tensor<12x12xi32>) -> tensor<12x12xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<12x12xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<12x12xi1>, tensor<12x12xi1>
    return %6 : tensor<12x12xi1>
  }
  func.func private @_where_8(%arg0: tensor<2x2x12x12xi1>, %arg1: tensor<2x2x2x12x12xf32>, %arg2: tensor<f32>) -> (tensor<2x2x2x12x12xf32>, tensor<2x2x2x12x12xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x2x12x12xf32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2, 3, 4] : (tensor<2x2x12x12xi1>) -> tensor<2x2x2x12x12xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [1, 2, 3, 4] : (tensor<2x2x12x12xf32>) -> tensor<2x2x2x12x12xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<2x2x2x12x12xi1>, tensor<2x2x2x12x12xf32>
    return %3, %1 : tensor<2x2x2x12x12xf32>, tensor<2x2x2x12x12xi1>
  }
  func.func private @_where_9(%arg0: tensor<2x2x2x12x12xi1>, %arg1: tensor<2x2x2x12x12xf32>) -> tensor<2x2x2x12x12xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x2x12x12xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x2x2x12x12xi1>, tensor<2x2x2x12x12xf32>
    return %1 : tensor<2x2x2x12x12xf32>
  }
  func.func private @_where_10(%arg0: tensor<2x1x12x12xi1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<2x1x12x12xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x1x12x12xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x1x12x12xf32>
    %2 = stablehlo.select %arg0, %0, %1 : tensor<2x1x12x12xi1>, tensor<2x1x12x12xf32>
    return %2 : tensor<2x1x12x12xf32>
  }
}
