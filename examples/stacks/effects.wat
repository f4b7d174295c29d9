;; Effect handlers: the same computation, which reads and writes a variable and reports values, runs with a handler that
;; keeps the variable in a local and sums the reports, and with one that stops it at the first large report.
;;
;;   waft run --feature stack-switching=on --invoke sum examples/stacks/effects.wat 5     → 31
;;   waft run --feature stack-switching=on --invoke stop examples/stacks/effects.wat 10   → 16
(module
  (type $unit (func))
  (type $value (func (param i32)))
  (type $start (cont $unit))
  (type $got (cont $value))
  (type $begin (func (param i32)))
  (type $begun (cont $begin))

  ;; The effects of the computation: what it asks for, and the type of the answer.
  (tag $get (result i32))
  (tag $put (param i32))
  (tag $report (param i32))
  ;; What ends a computation that is not resumed any more.
  (tag $cancel)
  (elem declare func $powers)

  ;; Reports the variable and doubles it, $n times.
  (func $powers (type $begin) (param $n i32)
    (loop $next
      (suspend $report (suspend $get))
      (suspend $put (i32.mul (suspend $get) (i32.const 2)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))

  (func $computation (param $n i32) (result (ref $start))
    (cont.bind $begun $start (local.get $n) (cont.new $begun (ref.func $powers))))

  ;; Runs a computation until it reports a value; returns the value, the variable and the rest, which is null at the end.
  (func $handle (param $rest (ref null $start)) (param $variable i32) (result i32 i32 (ref null $start))
    (local $asked (ref null $got))
    (loop $continue
      (block $onPut (result i32 (ref $start))
        (block $onGet (result (ref $got))
          (block $onReport (result i32 (ref $start))
            (resume $start (on $get $onGet) (on $put $onPut) (on $report $onReport) (local.get $rest))
            (return (i32.const 0) (local.get $variable) (ref.null $start)))
          (local.set $rest)
          (return (local.get $variable) (local.get $rest)))
        ;; The answer to $get is an argument of the rest.
        (local.set $asked)
        (local.set $rest (cont.bind $got $start (local.get $variable) (local.get $asked)))
        (br $continue))
      (local.set $rest)
      (local.set $variable)
      (br $continue))
    (unreachable))

  (func (export "sum") (param $n i32) (result i32)
    (local $rest (ref null $start)) (local $variable i32) (local $sum i32)
    (local.set $rest (call $computation (local.get $n)))
    (local.set $variable (i32.const 1))
    (loop $next
      (call $handle (local.get $rest) (local.get $variable))
      (local.set $rest)
      (local.set $variable)
      (local.set $sum (i32.add (local.get $sum)))
      (br_if $next (i32.eqz (ref.is_null (local.get $rest)))))
    (local.get $sum))

  (func (export "stop") (param $limit i32) (result i32)
    (local $rest (ref null $start)) (local $variable i32) (local $reported i32)
    (local.set $rest (call $computation (i32.const 1000)))
    (local.set $variable (i32.const 1))
    (loop $next
      (call $handle (local.get $rest) (local.get $variable))
      (local.set $rest)
      (local.set $variable)
      (local.set $reported)
      (br_if $next (i32.le_u (local.get $reported) (local.get $limit))))
    ;; The computation would clean up here, if it had anything to clean up.
    (block $cancelled
      (try_table (catch $cancel $cancelled)
        (resume_throw $start $cancel (local.get $rest))))
    (local.get $reported)))
