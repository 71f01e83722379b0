// Four processes that combine by differences give the same numbers before and after.
// RUN: strop run --check %s 2>%t.err | FileCheck %s
// RUN: strop opt %s --passes=collective-reducer-expander --compare | FileCheck %s --check-prefix=AFTER
// CHECK: 4 checks passed
// AFTER-NOT: {{all-reduce|reduce-scatter}}(

func.func @process(%x: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>, tensor<1xi32>) {
  %id = stablehlo.partition_id : tensor<ui32>
  %number = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
  %replica = stablehlo.replica_id : tensor<ui32>
  %row = stablehlo.convert %replica : (tensor<ui32>) -> tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %rows = stablehlo.multiply %row, %ten : tensor<i32>
  %sum = stablehlo.add %number, %rows : tensor<i32>
  %all = stablehlo.broadcast_in_dim %sum, dims = [] : (tensor<i32>) -> tensor<2xi32>
  %y = stablehlo.add %x, %all : tensor<2xi32>
  %flat:2 = "stablehlo.all_reduce"(%y, %all) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %d = stablehlo.subtract %a, %b : tensor<i32>
    stablehlo.return %d : tensor<i32>
  }) {replica_groups = dense<[[3, 0], [1, 2]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  %piece = "stablehlo.reduce_scatter"(%y) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %d = stablehlo.subtract %a, %b : tensor<i32>
    stablehlo.return %d : tensor<i32>
  }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<1xi32>
  return %flat#0, %flat#1, %piece : tensor<2xi32>, tensor<2xi32>, tensor<1xi32>
}
func.func @main() {
  %x = stablehlo.constant dense<[100, 200]> : tensor<2xi32>
  %0:12 = "interpreter.run_parallel"(%x, %x, %x, %x) {programs = [[@process, @process], [@process, @process]]} : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>, tensor<1xi32>, tensor<2xi32>, tensor<2xi32>, tensor<1xi32>, tensor<2xi32>, tensor<2xi32>, tensor<1xi32>, tensor<2xi32>, tensor<2xi32>, tensor<1xi32>)
  check.expect_eq_const %0#0, dense<[11, 11]> : tensor<2xi32>
  check.expect_eq_const %0#3, dense<[-9, -9]> : tensor<2xi32>
  check.expect_eq_const %0#7, dense<-9> : tensor<2xi32>
  check.expect_eq_const %0#8, dense<-10> : tensor<1xi32>
  return
}
