;; A generator: a walk over a binary tree in memory yields its keys in order, and two walks are compared key by key, as if
;; each tree were a list. Neither walk knows about the other, and neither builds a list.
;;
;;   waft run --feature stack-switching=on --invoke same examples/stacks/generator.wat 1   → 1
(module
  (type $walk (func (param i32)))
  (type $rest (func))
  (type $start (cont $walk))
  (type $more (cont $rest))
  (tag $key (param i32))
  (elem declare func $walk)

  ;; A node is at a multiple of 12: left child, key, right child; 0 is no node.
  (memory (data "\00\00\00\00\00\00\00\00\00\00\00\00"))
  (global $top (mut i32) (i32.const 12))

  (func $node (param $left i32) (param $key i32) (param $right i32) (result i32) (local $at i32)
    (local.set $at (global.get $top))
    (i32.store (local.get $at) (local.get $left))
    (i32.store offset=4 (local.get $at) (local.get $key))
    (i32.store offset=8 (local.get $at) (local.get $right))
    (global.set $top (i32.add (local.get $at) (i32.const 12)))
    (local.get $at))

  ;; Yields the keys of a tree, from deep within the recursion.
  (func $walk (type $walk) (param $tree i32)
    (if (i32.eqz (local.get $tree)) (then (return)))
    (call $walk (i32.load (local.get $tree)))
    (suspend $key (i32.load offset=4 (local.get $tree)))
    (call $walk (i32.load offset=8 (local.get $tree))))

  (func $keys (param $tree i32) (result (ref $more))
    (cont.bind $start $more (local.get $tree) (cont.new $start (ref.func $walk))))

  ;; The next key and the rest of the walk; −1 and null at its end.
  (func $next (param $walk (ref null $more)) (result i32 (ref null $more))
    (block $yielded (result i32 (ref $more))
      (resume $more (on $key $yielded) (local.get $walk))
      (return (i32.const -1) (ref.null $more))))

  (func $equal (param $a i32) (param $b i32) (result i32)
    (local $walkA (ref null $more)) (local $walkB (ref null $more)) (local $keyA i32) (local $keyB i32)
    (local.set $walkA (call $keys (local.get $a)))
    (local.set $walkB (call $keys (local.get $b)))
    (loop $compare
      (call $next (local.get $walkA)) (local.set $walkA) (local.set $keyA)
      (call $next (local.get $walkB)) (local.set $walkB) (local.set $keyB)
      (if (i32.ne (local.get $keyA) (local.get $keyB)) (then (return (i32.const 0))))
      (br_if $compare (i32.ne (local.get $keyA) (i32.const -1))))
    (i32.const 1))

  ;; Whether the trees ((1) 2 (3)) and (((1) 2) 3) have the same keys, with 3 + $extra in the second one.
  (func (export "same") (param $same i32) (result i32)
    (call $equal
      (call $node
        (call $node (i32.const 0) (i32.const 1) (i32.const 0))
        (i32.const 2)
        (call $node (i32.const 0) (i32.const 3) (i32.const 0)))
      (call $node
        (call $node (call $node (i32.const 0) (i32.const 1) (i32.const 0)) (i32.const 2) (i32.const 0))
        (select (i32.const 3) (i32.const 4) (local.get $same))
        (i32.const 0)))))
