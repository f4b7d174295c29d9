/**
 * The builtins of "wasm:js-string" as machine code, for strings whose text is in native memory (string_layout.ts): an
 * intrinsic WebAssembly module in text form, compiled once a program has called the builtins often enough. Its memory
 * is the whole address space (base 0, unchecked accesses: CompileOptions.unchecked), so every address below is a native
 * one. References are i64 here: they occupy the same registers, and the code needs their bits.
 *
 * Each function handles the common cases and leaves the others to the runtime's builtin of the same name, imported from
 * "runtime": text that is not in the arena, lack of space or handles, and all traps. A function that falls back has had
 * no observable effect.
 */
import { OBJECT, REF_TAG, REF_TAG_MASK } from "../../abi/gc_layout.ts";
import {
  ENTRY_SHIFT,
  MAX_COPIED,
  MAX_JOINED,
  NO_STRING,
  OTHER_WORD,
  RETRY,
  SHORTAGE,
  SINGLE_UNITS,
  STRING_BUILTIN_NAMES,
  STRING_BUILTINS,
  STRING_CONTROL,
  STRING_ENTRY,
  type StringBuiltin,
  TEXT_SLOT,
} from "../../abi/string_layout.ts";

/** Texts of at least this many units are copied by memory.copy. */
const LONG_COPY = 64;

// Locals have the same meaning in all function bodies.
const get = (name: string) => `(local.get $${name})`;
/** Arguments. */
const [a, b, c] = ["a", "b", "c"].map(get) as [string, string, string];
/** The entries of $a and $b; lengths in units. */
const [e, f, m, n] = ["e", "f", "m", "n"].map(get) as [string, string, string, string];
/** Addresses; four units of text each; a new string or the result. */
const [p, q, x, y, w] = ["p", "q", "x", "y", "w"].map(get) as [string, string, string, string, string];
const LOCALS =
  "(local $e i64) (local $f i64) (local $m i32) (local $n i32) (local $p i64) (local $q i64) (local $x i64) (local $y i64)";

const wide = (value: string) => `(i64.extend_i32_u ${value})`;
/** Size in bytes of `units`, an i32. */
const bytesOf = (units: string) => `(i64.shl ${wide(units)} (i64.const 1))`;
const control = (offset: number) => `(i64.load offset=${offset} (global.get $control))`;
const setControl = (offset: number, value: string) => `(i64.store offset=${offset} (global.get $control) ${value})`;
/** Records a shortage, a bit of SHORTAGE. */
const recordShortage = (what: number) =>
  `(i32.store offset=${STRING_CONTROL.SHORTAGE} (global.get $control)
  (i32.or (i32.load offset=${STRING_CONTROL.SHORTAGE} (global.get $control)) (i32.const ${what})))`;
/** Adds `bytes` to an address. */
const advance = (local: string, bytes: number) => `(local.set $${local} (i64.add ${get(local)} (i64.const ${bytes})))`;

/** The address of a reference's entry; that of entry 0 unless the reference is a host handle. */
const entryOf = (word: string) =>
  `(i64.add ${control(STRING_CONTROL.ORIGIN)} (i64.shl
  (select ${word} (i64.const ${OTHER_WORD})
    (i32.eq (i32.and (i32.wrap_i64 ${word}) (i32.const ${REF_TAG_MASK})) (i32.const ${REF_TAG.HOST})))
  (i64.const ${ENTRY_SHIFT})))`;
const setE = `(local.set $e ${entryOf(a)})`;
const setF = `(local.set $f ${entryOf(b)})`;
const units = (entry: string) => `(i64.load offset=${STRING_ENTRY.UNITS} ${entry})`;
const readable = (entry: string) => `(i32.load offset=${STRING_ENTRY.READABLE} ${entry})`;
const stored = (entry: string) => `(i32.load offset=${STRING_ENTRY.LENGTH} ${entry})`;
const length = (entry: string) => `(i32.sub ${stored(entry)} (i32.const 1))`;
const isString = (entry: string) => `(i32.lt_u ${length(entry)} (i32.const ${NO_STRING - 1 | 0}))`;
/** Whether the whole text is in the arena; always true for the empty string. */
const isReadable = (entry: string) => `(i32.eq ${stored(entry)} (i32.add ${readable(entry)} (i32.const 1)))`;
/** The unit at index $b. */
const unit = `(i32.load16_u (i64.add ${units(e)} ${bytesOf(b)}))`;
const arrayLength = (array: string) => `(i32.load offset=${OBJECT.LENGTH} ${array})`;
const element = (array: string, index: string) =>
  `(i64.add (i64.add ${array} (i64.const ${OBJECT.FIELDS})) ${bytesOf(index)})`;

/** The address of the cell with the free list for text of $n units. */
const CELL = `
(func $cell (param $n i32) (result i64) (local $x i64)
  (local.set $x (i64.add ${bytesOf(n)} (i64.const ${TEXT_SLOT.SLACK})))
  (local.set $x (if (result i64) (i64.le_u ${x} (i64.const ${TEXT_SLOT.MAX_FINE}))
    (then (i64.shr_u (i64.add ${x} (i64.const ${TEXT_SLOT.GRAIN - 1})) (i64.const ${Math.log2(TEXT_SLOT.GRAIN)})))
    (else (i64.sub (i64.const ${TEXT_SLOT.FINE_CLASSES + 64})
      (i64.clz (i64.shr_u (i64.sub ${x} (i64.const 1)) (i64.const ${Math.log2(TEXT_SLOT.MAX_FINE)})))))))
  (i64.add (global.get $control) (i64.shl ${x} (i64.const 3))))`;

/** Sets $x to the slot size in bytes of the class whose cell is $p. */
const slotBytes = `
  (local.set $x (i64.shr_u (i64.sub ${p} (global.get $control)) (i64.const 3)))
  (local.set $x (if (result i64) (i64.le_u ${x} (i64.const ${TEXT_SLOT.FINE_CLASSES}))
    (then (i64.shl ${x} (i64.const ${Math.log2(TEXT_SLOT.GRAIN)})))
    (else (i64.shl (i64.const ${TEXT_SLOT.MAX_FINE}) (i64.sub ${x} (i64.const ${TEXT_SLOT.FINE_CLASSES}))))))`;

/**
 * Allocates a string of $n units, at least 1, with uninitialized text. Returns its reference, 0 if there is no space or
 * handle.
 */
const NEW = `
(func $new (param $n i32) (result i64) (local $p i64) (local $q i64) (local $x i64) (local $e i64) (local $w i64)
  (local.set $w ${control(STRING_CONTROL.HANDLES_TOP)})
  (if (i64.eq ${w} ${control(STRING_CONTROL.HANDLES)}) (then ${
  recordShortage(SHORTAGE.HANDLES)
} (return (i64.const 0))))
  (local.set $p (call $cell ${n}))
  (local.set $q (i64.load offset=${STRING_CONTROL.FREE} ${p}))
  (if (i64.eqz ${q})
    (then
      ${slotBytes}
      (local.set $q ${control(STRING_CONTROL.TOP)})
      (local.set $x (i64.add ${q} ${x}))
      (if (i64.gt_u ${x} ${control(STRING_CONTROL.END)}) (then
        ${recordShortage(SHORTAGE.TEXT)}
        (return (i64.const 0))))
      ${setControl(STRING_CONTROL.TOP, x)})
    (else (i64.store offset=${STRING_CONTROL.FREE} ${p} (i64.load ${q}))))
  ${advance("w", -4)}
  ${setControl(STRING_CONTROL.HANDLES_TOP, w)}
  (local.set $w (i64.load32_u ${w}))
  (local.set $e (i64.add ${control(STRING_CONTROL.ORIGIN)} (i64.shl ${w} (i64.const ${ENTRY_SHIFT}))))
  (i64.store offset=${STRING_ENTRY.UNITS} ${e} ${q})
  (i32.store offset=${STRING_ENTRY.READABLE} ${e} ${n})
  (i32.store offset=${STRING_ENTRY.LENGTH} ${e} (i32.add ${n} (i32.const 1)))
  ${w})`;
/** The address of the text of the new string $w. */
const newUnits = units(
  `(i64.add ${control(STRING_CONTROL.ORIGIN)} (i64.shl ${w} (i64.const ${ENTRY_SHIFT})))`,
);

/** Copies $n units to a slot, eight bytes at a time; may write up to SLACK bytes more. */
const COPY = `
(func $copy (param $p i64) (param $q i64) (param $n i32) (local $x i64)
  (if (i32.ge_u ${n} (i32.const ${LONG_COPY})) (then (memory.copy ${p} ${q} ${bytesOf(n)}) (return)))
  (local.set $x (i64.add ${p} ${bytesOf(n)}))
  (block $done (loop $more
    (br_if $done (i64.ge_u ${p} ${x}))
    (i64.store ${p} (i64.load ${q}))
    ${advance("p", 8)} ${advance("q", 8)}
    (br $more))))`;

/** The string of the single unit $a; 0 if there is no space or handle. */
const SINGLE = `
(func $single (param $a i32) (result i64) (local $p i64) (local $w i64)
  (local.set $p (i64.add (global.get $control) (i64.shl ${wide(a)} (i64.const 2))))
  (if (i32.lt_u ${a} (i32.const ${SINGLE_UNITS})) (then
    (local.set $w (i64.load32_u offset=${STRING_CONTROL.SINGLES} ${p}))
    (if (i32.eqz (i64.eqz ${w})) (then (return ${w})))))
  (local.set $w (call $new (i32.const 1)))
  (if (i64.eqz ${w}) (then (return ${w})))
  (i32.store16 ${newUnits} ${a})
  (if (i32.lt_u ${a} (i32.const ${SINGLE_UNITS})) (then
    (i64.store32 offset=${STRING_CONTROL.SINGLES} ${p} ${w})))
  ${w})`;

/**
 * Compares four units at $p with four at $q until all $n units (less than 2³¹) are compared or some differ; in that
 * case $x and $y contain them. Reads up to SLACK bytes beyond the text, inside the slots.
 */
const FIND_DIFFERENCE = `
  (local.set $p ${units(e)})
  (local.set $q ${units(f)})
  (block $found (loop $more
    (br_if $found (i32.le_s ${n} (i32.const 0)))
    (local.set $x (i64.load ${p}))
    (local.set $y (i64.load ${q}))
    (br_if $found (i64.ne ${x} ${y}))
    ${advance("p", 8)} ${advance("q", 8)}
    (local.set $n (i32.sub ${n} (i32.const 4)))
    (br $more)))`;
/** The index of the first differing unit among four. */
const different = `(i32.shr_u (i32.wrap_i64 (i64.ctz (i64.xor ${x} ${y}))) (i32.const 4))`;
/** Unit $m of $x or $y. */
const differentUnit = (four: string) =>
  `(i32.and (i32.wrap_i64 (i64.shr_u ${four} ${wide(`(i32.shl ${m} (i32.const 4))`)})) (i32.const 0xffff))`;

/**
 * Function bodies. They return the result, or branch to $leave to fall back; LOCALS and $w, which has the type of the
 * result, are declared.
 */
const BODIES: Readonly<Record<StringBuiltin, string>> = {
  length: `${setE}
  (br_if $leave (i32.eqz ${isString(e)}))
  (return ${length(e)})`,

  test: `${setE}
  (br_if $leave (i32.eqz ${stored(e)}))
  (return (i32.ne ${stored(e)} (i32.const ${NO_STRING | 0})))`,

  cast: `${setE}
  (br_if $leave (i32.eqz ${isString(e)}))
  (return ${a})`,

  charCodeAt: `${setE}
  (br_if $leave (i32.ge_u ${b} ${readable(e)}))
  (return ${unit})`,

  codePointAt: `${setE}
  (br_if $leave (i32.ge_u ${b} ${readable(e)}))
  (local.set $m ${unit})
  (if (i32.ne (i32.and ${m} (i32.const 0xfc00)) (i32.const 0xd800)) (then (return ${m})))
  (local.set $b (i32.add ${b} (i32.const 1)))
  (if (i32.ge_u ${b} ${readable(e)}) (then (return ${m})))
  (local.set $n ${unit})
  (if (i32.ne (i32.and ${n} (i32.const 0xfc00)) (i32.const 0xdc00)) (then (return ${m})))
  (return (i32.add (i32.const 0x10000)
    (i32.or (i32.shl (i32.and ${m} (i32.const 0x3ff)) (i32.const 10)) (i32.and ${n} (i32.const 0x3ff)))))`,

  equals: `${setE}
  (if (i64.eq ${a} ${b}) (then
    (br_if $leave (i32.eqz (i32.or (i64.eqz ${a}) ${isString(e)})))
    (return (i32.const 1))))
  ${setF}
  (br_if $leave (i32.eqz (i32.and ${isString(e)} ${isString(f)})))
  (local.set $n ${length(e)})
  (if (i32.ne ${n} ${length(f)}) (then (return (i32.const 0))))
  (br_if $leave (i32.eqz (i32.and ${isReadable(e)} ${isReadable(f)})))
  ${FIND_DIFFERENCE}
  (if (i32.le_s ${n} (i32.const 0)) (then (return (i32.const 1))))
  (return (i32.ge_u ${different} ${n}))`,

  compare: `${setE} ${setF}
  (br_if $leave (i32.eqz (i32.and ${isString(e)} ${isString(f)})))
  (if (i64.eq ${a} ${b}) (then (return (i32.const 0))))
  (br_if $leave (i32.eqz (i32.and ${isReadable(e)} ${isReadable(f)})))
  (local.set $n (select ${length(e)} ${length(f)} (i32.lt_u ${length(e)} ${length(f)})))
  ${FIND_DIFFERENCE}
  (block $same
    (br_if $same (i32.le_s ${n} (i32.const 0)))
    (local.set $m ${different})
    (br_if $same (i32.ge_u ${m} ${n}))
    (return (select (i32.const -1) (i32.const 1) (i32.lt_u ${differentUnit(x)} ${differentUnit(y)}))))
  (return (i32.sub (i32.gt_u ${length(e)} ${length(f)}) (i32.lt_u ${length(e)} ${length(f)})))`,

  concat: `${setE} ${setF}
  (br_if $leave (i32.eqz (i32.and ${isReadable(e)} ${isReadable(f)})))
  (local.set $m ${readable(e)})
  (local.set $n ${readable(f)})
  (if (i32.eqz ${m}) (then (return ${b})))
  (if (i32.eqz ${n}) (then (return ${a})))
  (br_if $leave (i32.gt_u (i32.add ${m} ${n}) (i32.const ${MAX_JOINED})))
  (local.set $w (call $new (i32.add ${m} ${n})))
  (br_if $leave (i64.eqz ${w}))
  (local.set $p ${newUnits})
  (call $copy ${p} ${units(e)} ${m})
  (call $copy (i64.add ${p} ${bytesOf(m)}) ${units(f)} ${n})
  (return ${w})`,

  substring: `${setE}
  (br_if $leave (i32.eqz ${isReadable(e)}))
  (local.set $m ${readable(e)})
  (local.set $c (select ${c} ${m} (i32.lt_u ${c} ${m})))
  (if (i32.ge_u ${b} ${c}) (then (return ${wide(`(i32.load offset=${STRING_CONTROL.EMPTY} (global.get $control))`)})))
  (local.set $n (i32.sub ${c} ${b}))
  (if (i32.eq ${n} ${m}) (then (return ${a})))
  (if (i32.eq ${n} (i32.const 1)) (then
    (local.set $w (call $single ${unit}))
    (br_if $leave (i64.eqz ${w}))
    (return ${w})))
  (br_if $leave (i32.gt_u ${n} (i32.const ${MAX_JOINED})))
  (local.set $w (call $new ${n}))
  (br_if $leave (i64.eqz ${w}))
  (call $copy ${newUnits} (i64.add ${units(e)} ${bytesOf(b)}) ${n})
  (return ${w})`,

  fromCharCode: `
  (local.set $w (call $single (i32.and ${a} (i32.const 0xffff))))
  (br_if $leave (i64.eqz ${w}))
  (return ${w})`,

  fromCodePoint: `
  (br_if $leave (i32.gt_u ${a} (i32.const 0x10ffff)))
  (if (i32.le_u ${a} (i32.const 0xffff)) (then
    (local.set $w (call $single ${a}))
    (br_if $leave (i64.eqz ${w}))
    (return ${w})))
  (local.set $w (call $new (i32.const 2)))
  (br_if $leave (i64.eqz ${w}))
  (local.set $n (i32.sub ${a} (i32.const 0x10000)))
  (i32.store ${newUnits} (i32.or
    (i32.add (i32.const 0xd800) (i32.shr_u ${n} (i32.const 10)))
    (i32.shl (i32.add (i32.const 0xdc00) (i32.and ${n} (i32.const 0x3ff))) (i32.const 16))))
  (return ${w})`,

  fromCharCodeArray: `
  (br_if $leave (i64.eqz ${a}))
  (br_if $leave (i32.ge_u ${b} ${c}))
  (br_if $leave (i32.gt_u ${c} ${arrayLength(a)}))
  (local.set $n (i32.sub ${c} ${b}))
  (br_if $leave (i32.gt_u ${n} (i32.const ${MAX_COPIED})))
  (local.set $w (call $new ${n}))
  (br_if $leave (i64.eqz ${w}))
  (call $copy ${newUnits} ${element(a, b)} ${n})
  (return ${w})`,

  intoCharCodeArray: `${setE}
  (br_if $leave (i32.eqz ${isReadable(e)}))
  (br_if $leave (i64.eqz ${b}))
  (local.set $n ${readable(e)})
  (br_if $leave (i64.gt_u (i64.add ${wide(c)} ${wide(n)}) ${wide(arrayLength(b))}))
  (local.set $p ${element(b, c)})
  (local.set $q ${units(e)})
  (if (i32.ge_u ${n} (i32.const ${LONG_COPY})) (then
    (memory.copy ${p} ${q} ${bytesOf(n)})
    (return ${n})))
  ;; Writes must not go beyond the last unit of the array.
  (local.set $x (i64.add ${p} ${bytesOf(n)}))
  (block $done (loop $more
    (br_if $done (i64.gt_u (i64.add ${p} (i64.const 8)) ${x}))
    (i64.store ${p} (i64.load ${q}))
    ${advance("p", 8)} ${advance("q", 8)}
    (br $more)))
  (block $done (loop $more
    (br_if $done (i64.ge_u ${p} ${x}))
    (i32.store16 ${p} (i32.load16_u ${q}))
    ${advance("p", 2)} ${advance("q", 2)}
    (br $more)))
  (return ${n})`,
};

/** Sweeps: frees the unmarked handles of strings, from SWEPT on. */
const SWEEP = `
(func (export "sweep") (local $w i64) (local $q i64) (local $y i64) (local $e i64) (local $p i64) (local $x i64)
  (local.set $w ${control(STRING_CONTROL.SWEPT)})
  (local.set $e (i64.add ${control(STRING_CONTROL.ORIGIN)} (i64.shl ${w} (i64.const ${ENTRY_SHIFT}))))
  (local.set $q ${control(STRING_CONTROL.SWEPT_MARKS)})
  (local.set $y (i64.add ${q} (i64.load32_u offset=${STRING_CONTROL.SWEPT_COUNT} (global.get $control))))
  (loop $numbers
    (block $next
      (br_if $next (i32.load8_u ${q}))
      (br_if $next (i32.eqz ${stored(e)}))
      (if ${readable(e)} (then
        (local.set $p (call $cell ${readable(e)}))
        (local.set $x ${units(e)})
        (i64.store ${x} (i64.load offset=${STRING_CONTROL.FREE} ${p}))
        (i64.store offset=${STRING_CONTROL.FREE} ${p} ${x})))
      (i64.store ${e} (i64.const 0))
      (i64.store offset=8 ${e} (i64.const 0))
      (local.set $x ${control(STRING_CONTROL.HANDLES_TOP)})
      (i64.store32 ${x} ${w})
      ${setControl(STRING_CONTROL.HANDLES_TOP, `(i64.add ${x} (i64.const 4))`)})
    ${advance("w", 8)} ${advance("e", STRING_ENTRY.SIZE)} ${advance("q", 1)}
    (br_if $numbers (i64.lt_u ${q} ${y}))))`;

/** The value type for a letter of STRING_BUILTINS: references are i64 here. */
const typeOf = (letter: string): "i32" | "i64" => letter === "i" ? "i32" : "i64";

function functionOf(name: StringBuiltin): string {
  const [letters, result] = STRING_BUILTINS[name].split(">") as [string, string];
  const params = [...letters].map((letter, k) => `(param $${"abc"[k]} ${typeOf(letter)})`).join(" ");
  const call = `(call $runtime_${name} ${[a, b, c].slice(0, letters.length).join(" ")})`;
  const type = typeOf(result);
  return `
(func (export "${name}") ${params} (result ${type}) ${LOCALS} (local $w ${type})
  (loop $again (result ${type})
    (block $leave ${BODIES[name]})
    (br_if $again (${type}.eq (local.tee $w ${call}) (${type}.const ${RETRY[type]})))
    ${w}))`;
}

function importOf(name: StringBuiltin): string {
  const [letters, result] = STRING_BUILTINS[name].split(">") as [string, string];
  const params = [...letters].map(typeOf).join(" ");
  return `(import "runtime" "${name}" (func $runtime_${name} (param ${params}) (result ${typeOf(result)})))`;
}

/** The text of the module. */
export const STRING_CODE = `(module $strings
${STRING_BUILTIN_NAMES.map(importOf).join("\n")}
(import "runtime" "control" (global $control i64))
(memory i64 0)
${CELL}${NEW}${COPY}${SINGLE}${SWEEP}${STRING_BUILTIN_NAMES.map(functionOf).join("")})
`;
