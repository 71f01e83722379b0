// Programs of several processes are no executable: the evaluator runs them, and says so.
// RUN: strop run --check %s 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file=%t.err
// RUN: strop run --check --interpret %s | FileCheck %s
// CHECK: 2 checks passed
// SAID: programs of several processes: evaluated, not compiled

func.func @number() -> tensor<ui32> {
  %0 = stablehlo.partition_id : tensor<ui32>
  return %0 : tensor<ui32>
}
func.func @main() {
  %0:2 = "interpreter.run_parallel"() {programs = [[@number, @number]]} : () -> (tensor<ui32>, tensor<ui32>)
  check.expect_eq_const %0#0, dense<0> : tensor<ui32>
  check.expect_eq_const %0#1, dense<1> : tensor<ui32>
  return
}
