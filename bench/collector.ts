/**
 * The garbage collector's pauses, as notes for the report. A tree of structures is live, once in address order and once
 * shuffled (marking then misses the caches at each step), while the program allocates garbage. A pause is the time that
 * compiled code waits for a collection.
 */
import { collectGarbage, gcStatistics, NewEngine } from "@waft/engine";

const PROGRAM = `(module
  (type $node (struct (field $value i32) (field $left (mut (ref null $node))) (field $right (mut (ref null $node)))))
  (type $nodes (array (mut (ref null $node))))
  (global $all (mut (ref null $nodes)) (ref.null $nodes))
  (global $root (mut (ref null $node)) (ref.null $node))
  (func (export "build") (param $n i32) (local $all (ref $nodes)) (local $k i32)
    (local.set $all (array.new_default $nodes (local.get $n)))
    (loop $l
      (array.set $nodes (local.get $all) (local.get $k)
        (struct.new $node (local.get $k) (ref.null $node) (ref.null $node)))
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (local.get $n))))
    (global.set $all (local.get $all)))
  ;; Node number $k of the tree: $step, coprime to the number of nodes, permutes the order.
  (func $at (param $k i32) (param $step i32) (result (ref null $node)) (local $n i32)
    (local.set $n (array.len (global.get $all)))
    (if (i32.ge_u (local.get $k) (local.get $n)) (then (return (ref.null $node))))
    (array.get $nodes (global.get $all)
      (i32.wrap_i64 (i64.rem_u
        (i64.mul (i64.extend_i32_u (local.get $k)) (i64.extend_i32_u (local.get $step)))
        (i64.extend_i32_u (local.get $n))))))
  (func (export "tree") (param $step i32) (local $k i32) (local $node (ref null $node))
    (loop $l
      (local.set $node (call $at (local.get $k) (local.get $step)))
      (struct.set $node $left (local.get $node)
        (call $at (i32.add (i32.shl (local.get $k) (i32.const 1)) (i32.const 1)) (local.get $step)))
      (struct.set $node $right (local.get $node)
        (call $at (i32.add (i32.shl (local.get $k) (i32.const 1)) (i32.const 2)) (local.get $step)))
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (array.len (global.get $all)))))
    (global.set $root (array.get $nodes (global.get $all) (i32.const 0)))
    (global.set $all (ref.null $nodes)))
  (func (export "drop") (global.set $root (ref.null $node)))
  (func (export "garbage") (param $n i32)
    (loop $l
      (drop (struct.new $node (local.get $n) (global.get $root) (ref.null $node)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))`;

type Exports = Record<"build" | "tree" | "garbage", (n: number) => void> & Record<"drop", () => void>;

/** Lines for the report. */
export function measureCollector(quick: boolean): string[] {
  const x = NewEngine({ tier: "optimizing" }).compile(PROGRAM).instantiate().exports as unknown as Exports;
  const notes: string[] = [];
  for (const count of quick ? [400_000] : [400_000, 4_000_000]) {
    for (const [name, step] of [["in order", 1], ["shuffled", 611_953]] as const) {
      x.build(count);
      x.tree(step);
      collectGarbage();
      const before = gcStatistics();
      const start = performance.now();
      x.garbage(count * 10);
      const time = performance.now() - start;
      const after = gcStatistics();
      const pauses = after.collections - before.collections;
      const total = after.pauses.total - before.pauses.total;
      notes.push(
        `collector, ${count / 1e6} M live objects ${name}: ${pauses} pauses of ${
          (total / Math.max(pauses, 1)).toFixed(1)
        } ms, ${(count * pauses / total / 1000).toFixed(0)} M objects/s; ${count * 10 / 1e6} M allocated in ${
          time.toFixed(0)
        } ms`,
      );
      x.drop();
    }
  }
  collectGarbage();
  return notes;
}
