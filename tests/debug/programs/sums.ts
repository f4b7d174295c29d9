// deno-lint-ignore-file
// @ts-nocheck: AssemblyScript, compiled by build.sh
function square(x: i32): i32 {
  return x * x;
}

function sumOfSquares(n: i32): i32 {
  let sum = 0;
  for (let k = 1; k <= n; k++) {
    sum += square(k);
  }
  return sum;
}

export function run(n: i32): i32 {
  let total = 0;
  while (n > 0) {
    total = total * 3 + sumOfSquares(n);
    n--;
  }
  return total;
}
