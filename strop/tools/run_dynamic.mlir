// Dynamic ops whose numbers are data (a barrier hides that they are constant) and whose results have known shapes.
// RUN: strop run %s --interpret | FileCheck %s
// RUN: strop run %s | FileCheck %s
// CHECK: 5 checks passed
// CHECK: 4 checks passed

func.func @main() {
  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %cm1 = stablehlo.constant dense<-1> : tensor<1xi64>
  %one, %minus = stablehlo.optimization_barrier %c1, %cm1 : tensor<1xi64>, tensor<1xi64>
  %padded = stablehlo.dynamic_pad %x, %nine, %one, %minus, %one : (tensor<3xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xi32>
  check.expect_eq_const %padded, dense<[9, 1, 9, 2, 9]> : tensor<5xi32>
  %cut = stablehlo.dynamic_pad %x, %nine, %minus, %one, %one : (tensor<3xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xi32>
  check.expect_eq_const %cut, dense<[9, 2, 9, 3, 9]> : tensor<5xi32>

  %line = stablehlo.iota dim = 0 : tensor<8xi32>
  %c8 = stablehlo.constant dense<8> : tensor<1xi64>
  %c3 = stablehlo.constant dense<3> : tensor<1xi64>
  %limit, %stride = stablehlo.optimization_barrier %c8, %c3 : tensor<1xi64>, tensor<1xi64>
  %slice = stablehlo.real_dynamic_slice %line, %one, %limit, %stride : (tensor<8xi32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi32>
  check.expect_eq_const %slice, dense<[1, 4, 7]> : tensor<3xi32>

  %table = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32>
  %rows = stablehlo.constant dense<[[1], [0]]> : tensor<2x1xi64>
  %c12 = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
  %sizes = stablehlo.optimization_barrier %c12 : tensor<2xi64>
  %gathered = "stablehlo.dynamic_gather"(%table, %rows, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<2x3xi32>, tensor<2x1xi64>, tensor<2xi64>) -> tensor<2x2xi32>
  check.expect_eq_const %gathered, dense<[[4, 5], [1, 2]]> : tensor<2x2xi32>

  %image = stablehlo.constant dense<[[[1.0], [2.0], [3.0], [4.0]]]> : tensor<1x4x1xf32>
  %kernel = stablehlo.constant dense<[[[1.0]], [[10.0]]]> : tensor<2x1x1xf32>
  %c20 = stablehlo.constant dense<[[2, -1]]> : tensor<1x2xi64>
  %amounts = stablehlo.optimization_barrier %c20 : tensor<1x2xi64>
  %conv = "stablehlo.dynamic_conv"(%image, %kernel, %amounts) <{window_strides = array<i64: 2>, rhs_dilation = array<i64: 2>, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64}> : (tensor<1x4x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x2x1xf32>
  check.expect_eq_const %conv, dense<[[[10.0], [31.0]]]> : tensor<1x2x1xf32>
  func.return
}

// -----

// Results whose sizes are data, within bounds: each step knows how much of the array is meant.
func.func @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %c4 = stablehlo.constant dense<4> : tensor<1xi64>
  %four = stablehlo.optimization_barrier %c4 : tensor<1xi64>
  %line = stablehlo.dynamic_iota %four, dim = 0 : (tensor<1xi64>) -> tensor<?xi32, #stablehlo.bounds<6>>
  %size = stablehlo.get_dimension_size %line, dim = 0 : (tensor<?xi32, #stablehlo.bounds<6>>) -> tensor<i32>
  check.expect_eq_const %size, dense<4> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ones = stablehlo.dynamic_broadcast_in_dim %one, %four, dims = [] : (tensor<i32>, tensor<1xi64>) -> tensor<?xi32, #stablehlo.bounds<6>>
  %more = stablehlo.add %line, %ones : tensor<?xi32, #stablehlo.bounds<6>>
  %product = stablehlo.reduce(%more init: %one) applies stablehlo.multiply across dimensions = [0] : (tensor<?xi32, #stablehlo.bounds<6>>, tensor<i32>) -> tensor<i32>
  check.expect_eq_const %product, dense<24> : tensor<i32>

  %x = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %c1 = stablehlo.constant dense<1> : tensor<1xi64>
  %step = stablehlo.optimization_barrier %c1 : tensor<1xi64>
  %padded = stablehlo.dynamic_pad %x, %zero, %step, %step, %step : (tensor<3xi32>, tensor<i32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi32, #stablehlo.bounds<9>>
  %length = stablehlo.get_dimension_size %padded, dim = 0 : (tensor<?xi32, #stablehlo.bounds<9>>) -> tensor<i32>
  check.expect_eq_const %length, dense<7> : tensor<i32>
  %c2 = stablehlo.constant dense<2> : tensor<1xi64>
  %stride = stablehlo.optimization_barrier %c2 : tensor<1xi64>
  %c0 = stablehlo.constant dense<0> : tensor<1xi64>
  %c3 = stablehlo.constant dense<3> : tensor<1xi64>
  %none, %three = stablehlo.optimization_barrier %c0, %c3 : tensor<1xi64>, tensor<1xi64>
  %cut = stablehlo.real_dynamic_slice %x, %none, %three, %stride : (tensor<3xi32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xi32, #stablehlo.bounds<3>>
  %last = stablehlo.reduce(%cut init: %zero) applies stablehlo.maximum across dimensions = [0] : (tensor<?xi32, #stablehlo.bounds<3>>, tensor<i32>) -> tensor<i32>
  check.expect_eq_const %last, dense<3> : tensor<i32>
  func.return
}
