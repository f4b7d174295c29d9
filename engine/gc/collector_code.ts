/**
 * The collector's inner loops, as a WebAssembly module in text that waft compiles itself on first use, so that every
 * backend has them as machine code. It is an intrinsic module with unchecked access to the address space (memory base
 * 0, CompileOptions.unchecked), so every address below is a machine address. No function takes arguments: they read the
 * control area (collector_layout.ts), whose address is an imported global.
 *
 *     begin      forgets free slots and pending sweeps of CELLS: its slots are free exactly when their type id is 0
 *     clear      removes all marks
 *     scan       marks the objects that the words in [LOW, HIGH) refer to: a word may point anywhere into an object
 *     drain      marks everything that marked objects refer to
 *     classify   counts live objects; blocks without any become free, those with some free slots wait for `sweep`
 *     sweep      gives the class's cell in CELLS the free slots of a waiting block; returns the bytes, 0 if none waits
 *     take       takes the first slot of the class's cell in CELLS, which has one
 *
 * Marking is depth first with an explicit stack; long arrays are traced in parts from a second stack, so that the first
 * stays short.
 */
import {
  CELLS,
  DESCRIPTOR,
  LONG_WORDS,
  OBJECT,
  REF_TAG,
  REF_TAG_MASK,
  SIZE_CLASSES,
  TYPE_KIND,
} from "../abi/gc_layout.ts";
import { BLOCK, BLOCK_BYTES, BLOCK_SHIFT, CONTROL, LARGE, MARKS_SHIFT } from "./collector_layout.ts";

/** Elements of an array that are traced at a time. */
const TRACED_ELEMENTS = 512;

/** A field of the control area. */
const control = (offset: number) => `(i64.load offset=${offset} (global.get $control))`;
const setControl = (offset: number, value: string) => `(i64.store offset=${offset} (global.get $control) ${value})`;
const get = (name: string) => `(local.get $${name})`;

/**
 * Tests and sets the mark bit of the object at byte $d of the heap; `then` runs if it was clear. Changes $p, $mask and
 * $byte.
 */
const mark = (then: string) => `
  (local.set $p (i64.add ${get("marks")} (i64.shr_u ${get("d")} (i64.const ${MARKS_SHIFT}))))
  (local.set $mask (i32.shl (i32.const 1)
    (i32.and (i32.wrap_i64 (i64.shr_u ${get("d")} (i64.const ${MARKS_SHIFT - 3}))) (i32.const 7))))
  (local.set $byte (i32.load8_u ${get("p")}))
  (if (i32.eqz (i32.and ${get("byte")} ${get("mask")})) (then
    (i32.store8 ${get("p")} (i32.or ${get("byte")} ${get("mask")}))
    ${then}))`;

/** Pushes the object `object` for drain. */
const push = (object: string) => `
  (i64.store ${get("sp")} ${object})
  (local.set $sp (i64.add ${get("sp")} (i64.const 8)))`;

/** Follows the reference $w of a field or element; `then` runs for an object that was not marked. */
const follow = (then: string) => `
  (local.set $d (i64.sub ${get("w")} ${get("base")}))
  (if (i64.lt_u ${get("d")} ${get("used")})
    (then ${mark(then)})
    (else (if (i64.ne ${get("w")} (i64.const 0)) (then (call $visit_other ${get("w")})))))`;
const visit = follow(push(get("w")));
/** Follows a reference to an object without references, which is marked but not visited. */
const visitLeaf = follow("");

const MARK_LOCALS =
  `(local $base i64) (local $used i64) (local $marks i64) (local $sp i64) (local $w i64) (local $d i64)
  (local $p i64) (local $mask i32) (local $byte i32)`;

const LOAD_MARK_LOCALS = `
  (local.set $base ${control(CONTROL.BASE)})
  (local.set $used ${control(CONTROL.USED)})
  (local.set $marks ${control(CONTROL.MARKS)})
  (local.set $sp ${control(CONTROL.STACK_TOP)})`;

/** Row of block number `number` (i64). */
const row = (number: string) => `(i64.add ${control(CONTROL.BLOCKS)} (i64.mul ${number} (i64.const ${BLOCK.SIZE_OF})))`;
const field = (offset: number) => `(i32.load offset=${offset} ${get("row")})`;
const wide = (value: string) => `(i64.extend_i32_u ${value})`;

/** Marks a host handle or an exception, found on a stack or in an object; queues an exception that was not marked. */
const VISIT_HANDLE = `
(func $visit_handle (param $w i64) (local $tag i32) (local $n i64)
  (local.set $tag (i32.and (i32.wrap_i64 ${get("w")}) (i32.const ${REF_TAG_MASK})))
  (local.set $n (i64.shr_u ${get("w")} (i64.const 3)))
  (if (i32.eq ${get("tag")} (i32.const ${REF_TAG.HOST})) (then
    (if (i64.lt_u ${get("n")} ${control(CONTROL.HOST_COUNT)}) (then
      (i32.store8 (i64.add ${control(CONTROL.HOST_MARKS)} ${get("n")}) (i32.const 1))))
    (return)))
  (if (i32.ne ${get("tag")} (i32.const ${REF_TAG.EXCEPTION})) (then (return)))
  (if (i64.ge_u ${get("n")} ${control(CONTROL.EXCEPTION_COUNT)}) (then (return)))
  (local.set $w (i64.add ${control(CONTROL.EXCEPTION_MARKS)} ${get("n")}))
  (if (i32.load8_u ${get("w")}) (then (return)))
  (i32.store8 ${get("w")} (i32.const 1))
  (i32.store (i64.add ${control(CONTROL.EXCEPTION_QUEUE)}
    (i64.shl ${control(CONTROL.EXCEPTION_QUEUED)} (i64.const 2))) (i32.wrap_i64 ${get("n")}))
  ${setControl(CONTROL.EXCEPTION_QUEUED, `(i64.add ${control(CONTROL.EXCEPTION_QUEUED)} (i64.const 1))`)})`;

/**
 * Marks the target of a reference in an object that is neither null nor an object: a handle. The instances of function
 * records are kept alive by JavaScript (runtime/instance/reference_edges.ts).
 */
const VISIT_OTHER = `
(func $visit_other (param $w i64)
  (if (i32.and (i32.wrap_i64 ${get("w")}) (i32.const ${REF_TAG.I31})) (then (return)))
  (call $visit_handle ${get("w")}))`;

const SCAN = `
(func (export "scan") ${MARK_LOCALS} (local $at i64) (local $end i64) (local $row i64) (local $slot i32)
  ${LOAD_MARK_LOCALS}
  (local.set $at ${control(CONTROL.LOW)})
  (local.set $end ${control(CONTROL.HIGH)})
  (block $done (loop $next
    (br_if $done (i64.ge_u ${get("at")} ${get("end")}))
    (local.set $w (i64.load ${get("at")}))
    (local.set $at (i64.add ${get("at")} (i64.const 8)))
    (local.set $d (i64.sub ${get("w")} ${get("base")}))
    (if (i64.ge_u ${get("d")} ${get("used")}) (then
      (if (i32.and (i32.wrap_i64 ${get("w")}) (i32.const 6)) (then (call $visit_handle ${get("w")})))
      (br $next)))
    (local.set $row ${row(`(i64.shr_u ${get("d")} (i64.const ${BLOCK_SHIFT}))`)})
    (br_if $next (i32.eqz ${field(BLOCK.SLOT_BYTES)}))
    (if (i32.eq ${field(BLOCK.SLOT_BYTES)} (i32.const ${LARGE | 0}))
      (then (local.set $d (i64.shl ${wide(field(BLOCK.NEXT))} (i64.const ${BLOCK_SHIFT}))))
      (else
        (local.set $slot (i32.wrap_i64 (i64.shr_u
          (i64.mul (i64.and ${get("d")} (i64.const ${BLOCK_BYTES - 1})) ${wide(field(BLOCK.RECIPROCAL))})
          (i64.const 32))))
        (br_if $next (i32.ge_u ${get("slot")} ${field(BLOCK.COUNT)}))
        (local.set $d (i64.add
          (i64.and ${get("d")} (i64.const ${-BLOCK_BYTES}))
          ${wide(`(i32.mul ${get("slot")} ${field(BLOCK.SLOT_BYTES)})`)}))))
    (local.set $w (i64.add ${get("base")} ${get("d")}))
    (br_if $next (i32.eqz (i32.load offset=${OBJECT.TYPE_ID} ${get("w")})))
    ${mark(push(get("w")))}
    (br $next)))
  ${setControl(CONTROL.STACK_TOP, get("sp"))})`;

const DRAIN = `
(func (export "drain") ${MARK_LOCALS} (local $types i64) (local $bottom i64) (local $peak i64) (local $arrays i64)
  (local $object i64) (local $type i64) (local $bits i64) (local $leaves i64)
  (local $at i64) (local $end i64) (local $words i64) (local $map i64)
  ${LOAD_MARK_LOCALS}
  (local.set $types ${control(CONTROL.TYPES)})
  (local.set $bottom ${control(CONTROL.STACK)})
  (local.set $peak ${control(CONTROL.STACK_PEAK)})
  (local.set $arrays ${control(CONTROL.ARRAYS)})
  (block $done (loop $next
    (block $trace
      (if (i64.eq ${get("sp")} ${get("bottom")}) (then
        ;; The next elements of a long array.
        (br_if $done (i64.eq ${get("arrays")} ${control(CONTROL.ARRAYS)}))
        (local.set $object (i64.load offset=0 (i64.sub ${get("arrays")} (i64.const 16))))
        (local.set $at (i64.load offset=8 (i64.sub ${get("arrays")} (i64.const 16))))
        (local.set $leaves (i64.const 0))
        (local.set $words (i64.sub ${wide(`(i32.load offset=${OBJECT.LENGTH} ${get("object")})`)} ${get("at")}))
        (if (i64.gt_u ${get("words")} (i64.const ${TRACED_ELEMENTS}))
          (then
            (local.set $words (i64.const ${TRACED_ELEMENTS}))
            (i64.store offset=8 (i64.sub ${get("arrays")} (i64.const 16)) (i64.add ${
  get("at")
} (i64.const ${TRACED_ELEMENTS}))))
          (else (local.set $arrays (i64.sub ${get("arrays")} (i64.const 16)))))
        (local.set $at (i64.add (i64.add ${get("object")} (i64.const ${OBJECT.FIELDS})) (i64.shl ${
  get("at")
} (i64.const 3))))
        (br $trace)))
      (if (i64.gt_u ${get("sp")} ${get("peak")}) (then (local.set $peak ${get("sp")})))
      (local.set $sp (i64.sub ${get("sp")} (i64.const 8)))
      (local.set $object (i64.load ${get("sp")}))
      (local.set $type (i64.add ${get("types")}
        (i64.mul ${wide(`(i32.load offset=${OBJECT.TYPE_ID} ${get("object")})`)} (i64.const ${DESCRIPTOR.SIZE}))))
      (local.set $bits (i64.load offset=${DESCRIPTOR.REFERENCES} ${get("type")}))
      (br_if $next (i64.eqz ${get("bits")}))
      (local.set $leaves (i64.load offset=${DESCRIPTOR.LEAVES} ${get("type")}))
      (if (i32.eq (i32.load offset=${DESCRIPTOR.KIND} ${get("type")}) (i32.const ${TYPE_KIND.ARRAY})) (then
        (local.set $words ${wide(`(i32.load offset=${OBJECT.LENGTH} ${get("object")})`)})
        (if (i32.and (i64.gt_u ${get("words")} (i64.const ${TRACED_ELEMENTS})) (i64.eqz ${get("leaves")})) (then
          (i64.store offset=0 ${get("arrays")} ${get("object")})
          (i64.store offset=8 ${get("arrays")} (i64.const 0))
          (local.set $arrays (i64.add ${get("arrays")} (i64.const 16)))
          (br $next)))
        (local.set $at (i64.add ${get("object")} (i64.const ${OBJECT.FIELDS})))
        (br $trace)))
      (local.set $at (i64.add ${get("object")} (i64.const ${OBJECT.FIELDS})))
      (local.set $words (i64.shr_u (i64.sub ${wide(`(i32.load offset=${DESCRIPTOR.BYTES} ${get("type")})`)}
        (i64.const ${OBJECT.FIELDS})) (i64.const 3)))
      (if (i64.gt_u ${get("words")} (i64.const ${LONG_WORDS})) (then
        ;; A structure with a long bitmap.
        (local.set $map ${get("bits")})
        (local.set $object ${get("at")})
        (local.set $end (i64.add ${get("map")} (i64.shl (i64.shr_u (i64.add ${
  get("words")
} (i64.const 63)) (i64.const 6))
          (i64.const 3))))
        (loop $maps
          (local.set $at ${get("object")})
          (local.set $bits (i64.load ${get("map")}))
          (block $empty (loop $fields
            (br_if $empty (i64.eqz ${get("bits")}))
            (local.set $w (i64.load (i64.add ${get("at")} (i64.shl (i64.ctz ${get("bits")}) (i64.const 3)))))
            (local.set $bits (i64.and ${get("bits")} (i64.sub ${get("bits")} (i64.const 1))))
            ${visit}
            (br $fields)))
          (local.set $object (i64.add ${get("object")} (i64.const 512)))
          (local.set $map (i64.add ${get("map")} (i64.const 8)))
          (br_if $maps (i64.lt_u ${get("map")} ${get("end")})))
        (br $next)))
      (local.set $bits (i64.xor ${get("bits")} ${get("leaves")}))
      (block $empty (loop $fields
        (br_if $empty (i64.eqz ${get("bits")}))
        (local.set $w (i64.load (i64.add ${get("at")} (i64.shl (i64.ctz ${get("bits")}) (i64.const 3)))))
        (local.set $bits (i64.and ${get("bits")} (i64.sub ${get("bits")} (i64.const 1))))
        ${visit}
        (br $fields)))
      (loop $fields
        (br_if $next (i64.eqz ${get("leaves")}))
        (local.set $w (i64.load (i64.add ${get("at")} (i64.shl (i64.ctz ${get("leaves")}) (i64.const 3)))))
        (local.set $leaves (i64.and ${get("leaves")} (i64.sub ${get("leaves")} (i64.const 1))))
        ${visitLeaf}
        (br $fields)))
    ;; $words references from $at on.
    (local.set $end (i64.add ${get("at")} (i64.shl ${get("words")} (i64.const 3))))
    (if (i64.ne ${get("leaves")} (i64.const 0)) (then
      (loop $elements
        (br_if $next (i64.ge_u ${get("at")} ${get("end")}))
        (local.set $w (i64.load ${get("at")}))
        (local.set $at (i64.add ${get("at")} (i64.const 8)))
        ${visitLeaf}
        (br $elements))))
    (loop $elements
      (br_if $next (i64.ge_u ${get("at")} ${get("end")}))
      (local.set $w (i64.load ${get("at")}))
      (local.set $at (i64.add ${get("at")} (i64.const 8)))
      ${visit}
      (br $elements))))
  ${setControl(CONTROL.STACK_TOP, get("sp"))}
  ${setControl(CONTROL.STACK_PEAK, get("peak"))})`;

/** Whether the slot at address $slot is unmarked. */
const unmarked = `(i32.eqz (i32.and
  (i32.shr_u
    (i32.load8_u (i64.add ${get("marks")} (i64.shr_u (i64.sub ${get("slot")} ${
  get("base")
}) (i64.const ${MARKS_SHIFT}))))
    (i32.and (i32.wrap_i64 (i64.shr_u (i64.sub ${get("slot")} ${get("base")}) (i64.const ${
  MARKS_SHIFT - 3
}))) (i32.const 7)))
  (i32.const 1)))`;

const SWEEP_LOCALS = `(local $class i64) (local $pending i64) (local $number i32) (local $row i64) (local $base i64)
  (local $marks i64) (local $size i64) (local $slot i64) (local $end i64)`;

/** Loads base, mark bits, and, for block $number (plus 1): row, slot size, first slot, end of the last. */
const OPEN_BLOCK = `
  (local.set $row ${row(wide(`(i32.sub ${get("number")} (i32.const 1))`))})
  (local.set $size ${wide(field(BLOCK.SLOT_BYTES))})
  (local.set $slot (i64.add ${get("base")}
    (i64.shl ${wide(`(i32.sub ${get("number")} (i32.const 1))`)} (i64.const ${BLOCK_SHIFT}))))
  (local.set $end (i64.add ${get("slot")} (i64.mul ${get("size")} ${wide(field(BLOCK.COUNT))})))`;

const BEGIN = `
(func (export "begin") ${SWEEP_LOCALS} (local $cell i64)
  (local.set $base ${control(CONTROL.BASE)})
  (local.set $marks ${control(CONTROL.MARKS)})
  (loop $classes
    ;; Free slots that were not taken.
    (local.set $cell (i64.add ${control(CONTROL.CELLS)} (i64.shl ${get("class")} (i64.const 3))))
    (local.set $slot (i64.load offset=${CELLS.FREE} ${get("cell")}))
    (i64.store offset=${CELLS.FREE} ${get("cell")} (i64.const 0))
    (block $empty (loop $free
      (br_if $empty (i64.eqz ${get("slot")}))
      (local.set $end (i64.load ${get("slot")}))
      (i64.store ${get("slot")} (i64.const 0))
      (local.set $slot ${get("end")})
      (br $free)))
    ;; Dead objects in blocks that were not swept.
    (local.set $pending (i64.add ${control(CONTROL.CELLS)} (i64.shl ${get("class")} (i64.const 2))))
    (block $swept (loop $blocks
      (local.set $number (i32.load offset=${CELLS.PENDING} ${get("pending")}))
      (br_if $swept (i32.eqz ${get("number")}))
      ${OPEN_BLOCK}
      (i32.store offset=${CELLS.PENDING} ${get("pending")} ${field(BLOCK.NEXT)})
      (loop $slots
        (if ${unmarked} (then (i64.store ${get("slot")} (i64.const 0))))
        (local.set $slot (i64.add ${get("slot")} ${get("size")}))
        (br_if $slots (i64.lt_u ${get("slot")} ${get("end")})))
      (br $blocks)))
    (local.set $class (i64.add ${get("class")} (i64.const 1)))
    (br_if $classes (i64.lt_u ${get("class")} (i64.const ${SIZE_CLASSES.length})))))`;

const CLEAR = `
(func (export "clear")
  (memory.fill ${control(CONTROL.MARKS)} (i32.const 0) (i64.shr_u ${control(CONTROL.USED)} (i64.const ${MARKS_SHIFT})))
  ${setControl(CONTROL.STACK_TOP, control(CONTROL.STACK))})`;

const CLASSIFY = `
(func (export "classify") ${SWEEP_LOCALS} (local $live i64) (local $bytes i64) (local $objects i64) (local $at i64)
  (local.set $number (i32.wrap_i64 (i64.shr_u ${control(CONTROL.USED)} (i64.const ${BLOCK_SHIFT}))))
  (local.set $marks ${control(CONTROL.MARKS)})
  (block $done (loop $blocks
    (br_if $done (i32.eqz ${get("number")}))
    (local.set $row ${row(wide(`(i32.sub ${get("number")} (i32.const 1))`))})
    (block $next
      (br_if $next (i32.eqz ${field(BLOCK.SLOT_BYTES)}))
      (local.set $at (i64.add ${get("marks")} (i64.shl ${wide(`(i32.sub ${get("number")} (i32.const 1))`)}
        (i64.const ${BLOCK_SHIFT - MARKS_SHIFT}))))
      (if (i32.eq ${field(BLOCK.SLOT_BYTES)} (i32.const ${LARGE | 0})) (then
        (i32.store offset=${BLOCK.LIVE} ${get("row")} (i32.load8_u ${get("at")}))
        (br $next)))
      (local.set $end (i64.add ${get("at")} (i64.const ${BLOCK_BYTES >> MARKS_SHIFT})))
      (local.set $live (i64.const 0))
      (loop $bits
        (local.set $live (i64.add ${get("live")} (i64.popcnt (i64.load ${get("at")}))))
        (local.set $at (i64.add ${get("at")} (i64.const 8)))
        (br_if $bits (i64.lt_u ${get("at")} ${get("end")})))
      (i32.store offset=${BLOCK.LIVE} ${get("row")} (i32.wrap_i64 ${get("live")}))
      (local.set $objects (i64.add ${get("objects")} ${get("live")}))
      (local.set $bytes (i64.add ${get("bytes")} (i64.mul ${get("live")} ${wide(field(BLOCK.SLOT_BYTES))})))
      (if (i64.eqz ${get("live")}) (then
        (i32.store offset=${BLOCK.SLOT_BYTES} ${get("row")} (i32.const 0))
        (br $next)))
      (br_if $next (i64.eq ${get("live")} ${wide(field(BLOCK.COUNT))}))
      (local.set $class ${
  wide(
    `(i32.load8_u offset=${CELLS.CLASS_OF} (i64.add ${control(CONTROL.CELLS)} (i64.shr_u ${
      wide(field(BLOCK.SLOT_BYTES))
    } (i64.const 3))))`,
  )
})
      (local.set $pending (i64.add (i64.load offset=${BLOCK.CELLS} ${get("row")})
        (i64.shl ${get("class")} (i64.const 2))))
      (i32.store offset=${BLOCK.NEXT} ${get("row")} (i32.load offset=${CELLS.PENDING} ${get("pending")}))
      (i32.store offset=${CELLS.PENDING} ${get("pending")} ${get("number")}))
    (local.set $number (i32.sub ${get("number")} (i32.const 1)))
    (br $blocks)))
  ${setControl(CONTROL.LIVE_BYTES, get("bytes"))}
  ${setControl(CONTROL.LIVE_OBJECTS, get("objects"))})`;

const SWEEP = `
(func (export "sweep") (result i32) ${SWEEP_LOCALS} (local $link i64) (local $run i64) (local $bytes i64)
  (local.set $base ${control(CONTROL.BASE)})
  (local.set $marks ${control(CONTROL.MARKS)})
  (local.set $class ${wide(`(i32.load offset=${CONTROL.CLASS} (global.get $control))`)})
  (local.set $pending (i64.add ${control(CONTROL.CELLS)} (i64.shl ${get("class")} (i64.const 2))))
  (local.set $number (i32.load offset=${CELLS.PENDING} ${get("pending")}))
  (if (i32.eqz ${get("number")}) (then (return (i32.const 0))))
  ${OPEN_BLOCK}
  (i32.store offset=${CELLS.PENDING} ${get("pending")} ${field(BLOCK.NEXT)})
  ;; The address at which the address of the next free slot is stored.
  (local.set $link (i64.add (i64.add ${control(CONTROL.CELLS)} (i64.const ${CELLS.FREE})) (i64.shl ${
  get("class")
} (i64.const 3))))
  (block $done (loop $runs
    ;; The next run of free slots is [$run, $slot).
    (loop $used
      (br_if $done (i64.ge_u ${get("slot")} ${get("end")}))
      (local.set $run ${get("slot")})
      (local.set $slot (i64.add ${get("slot")} ${get("size")}))
      (br_if $used (i32.eqz ${unmarked.replaceAll("$slot", "$run")})))
    ;; Without live objects, as in a new block, the rest of the block is one run.
    (if (i32.eqz ${field(BLOCK.LIVE)}) (then (local.set $slot ${get("end")})))
    (block $ended (loop $free
      (br_if $ended (i64.ge_u ${get("slot")} ${get("end")}))
      (br_if $ended (i32.eqz ${unmarked}))
      (local.set $slot (i64.add ${get("slot")} ${get("size")}))
      (br $free)))
    (if (i32.eqz ${field(BLOCK.ZERO)}) (then
      (memory.fill ${get("run")} (i32.const 0) (i64.sub ${get("slot")} ${get("run")}))))
    (local.set $bytes (i64.add ${get("bytes")} (i64.sub ${get("slot")} ${get("run")})))
    (loop $links
      (i64.store ${get("link")} ${get("run")})
      (local.set $link ${get("run")})
      (local.set $run (i64.add ${get("run")} ${get("size")}))
      (br_if $links (i64.lt_u ${get("run")} ${get("slot")})))
    (br $runs)))
  (i64.store ${get("link")} (i64.const 0))
  (i32.store offset=${BLOCK.ZERO} ${get("row")} (i32.const 0))
  (i32.wrap_i64 ${get("bytes")}))`;

const TAKE = `
(func (export "take") (local $cell i64) (local $slot i64)
  (local.set $cell (i64.add ${control(CONTROL.CELLS)}
    (i64.shl ${wide(`(i32.load offset=${CONTROL.CLASS} (global.get $control))`)} (i64.const 3))))
  (local.set $slot (i64.load offset=${CELLS.FREE} ${get("cell")}))
  (i64.store offset=${CELLS.FREE} ${get("cell")} (i64.load ${get("slot")}))
  ${setControl(CONTROL.SLOT, get("slot"))})`;

/** The module's text. */
export const COLLECTOR_CODE = `(module $collector
(import "collector" "control" (global $control i64))
(memory i64 0)
${VISIT_HANDLE}
${VISIT_OTHER}
${SCAN}
${DRAIN}
${BEGIN}
${CLEAR}
${CLASSIFY}
${SWEEP}
${TAKE})
`;
