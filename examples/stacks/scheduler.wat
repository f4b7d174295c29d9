;; A scheduler: tasks run in turns and switch to each other directly, without a return to the scheduler. Each task counts
;; down, and adds its digit to a log at each turn.
;;
;;   waft run --feature stack-switching=on --invoke run examples/stacks/scheduler.wat 3   → 123123123
(module
  (rec
    (type $task (func (param (ref null $turn))))
    (type $turn (cont $task)))
  (type $make (func (param i32 i32 (ref null $turn))))
  (type $made (cont $make))
  (tag $switch)
  (elem declare func $work)

  ;; The tasks that wait, a ring.
  (table $queue 16 (ref null $turn))
  (global $head (mut i32) (i32.const 0))
  (global $tail (mut i32) (i32.const 0))
  (global $log (mut i64) (i64.const 0))

  (func $enqueue (param $task (ref null $turn))
    (if (ref.is_null (local.get $task)) (then (return)))
    (table.set $queue (i32.and (global.get $tail) (i32.const 15)) (local.get $task))
    (global.set $tail (i32.add (global.get $tail) (i32.const 1))))

  (func $dequeue (result (ref null $turn))
    (if (i32.eq (global.get $head) (global.get $tail)) (then (return (ref.null $turn))))
    (table.get $queue (i32.and (global.get $head) (i32.const 15)))
    (global.set $head (i32.add (global.get $head) (i32.const 1))))

  ;; Lets the next task run. That one receives the current task, and enqueues it.
  (func $yield (local $next (ref null $turn))
    (local.set $next (call $dequeue))
    (if (ref.is_null (local.get $next)) (then (return)))
    (call $enqueue (switch $turn $switch (local.get $next))))

  (func $work (type $make) (param $digit i32) (param $turns i32) (param $before (ref null $turn))
    (call $enqueue (local.get $before))
    (loop $again
      (global.set $log
        (i64.add (i64.mul (global.get $log) (i64.const 10)) (i64.extend_i32_u (local.get $digit))))
      (if (local.tee $turns (i32.sub (local.get $turns) (i32.const 1)))
        (then (call $yield) (br $again)))))

  (func $spawn (param $digit i32) (param $turns i32)
    (call $enqueue
      (cont.bind $made $turn (local.get $digit) (local.get $turns) (cont.new $made (ref.func $work)))))

  ;; Runs three tasks for $turns turns each; returns the log.
  (func (export "run") (param $turns i32) (result i64) (local $next (ref null $turn))
    (call $spawn (i32.const 1) (local.get $turns))
    (call $spawn (i32.const 2) (local.get $turns))
    (call $spawn (i32.const 3) (local.get $turns))
    (loop $run
      (local.set $next (call $dequeue))
      (if (i32.eqz (ref.is_null (local.get $next)))
        (then
          ;; Returns when a task ends; the tasks that switched to each other wait in the queue.
          (resume $turn (on $switch switch) (ref.null $turn) (local.get $next))
          (br $run))))
    (global.get $log)))
