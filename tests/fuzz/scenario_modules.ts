/**
 * Modules for the scenarios of the fuzzer (scenarios.ts) that the general generator reaches too rarely. In: a seed.
 * Out: binary modules in the order of instantiation; the second one imports from the first, "m0". Their global
 * "reached" counts how often the code of the scenario was executed.
 */
import { NewEngine } from "../../engine/mod.ts";
import { generateModules } from "./generate_module.ts";
import { Random } from "./random.ts";
import { readInterface } from "./read_interface.ts";
import type { TypeName } from "./value_types.ts";

type Binary = Uint8Array<ArrayBuffer>;

const engine = NewEngine();
const REACHED = `(global $reached (export "reached") (mut i32) (i32.const 0))`;
const REACH = "(global.set $reached (i32.add (global.get $reached) (i32.const 1)))";
const NUMBERS: readonly TypeName[] = ["i32", "i64", "f32", "f64"];

function binaryOf(text: string): Binary {
  return engine.parse(text).bytes as Binary;
}

function list(count: number, entry: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => entry(i)).join(" ");
}

// ---- many parameters and results ------------------------------------------------------------------------------------

/** An operation of two values of a type, without traps. */
const OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  i32: ["i32.add", "i32.xor", "i32.rotl"],
  i64: ["i64.sub", "i64.and", "i64.shr_u"],
  f32: ["f32.min", "f32.copysign"],
  f64: ["f64.max", "f64.copysign"],
};

/** Functions of up to 60 parameters and 30 results, called directly, indirectly, by reference and in tail position. */
export function manyValues(seed: number): Binary[] {
  const random = new Random(seed ^ 0x2545f491);
  const functions = Array.from({ length: random.between(1, 3) }, (_, n) => wideFunctions(random, n));
  const elements = functions.map((_, n) => `$inner${n}`).join(" ");
  return [binaryOf(`(module ${REACHED}
    (table funcref (elem ${elements}))
    ${functions.join("\n")})`)];
}

function wideFunctions(random: Random, n: number): string {
  const params = Array.from({ length: random.between(8, 60) }, () => random.pick(NUMBERS));
  const results = Array.from({ length: random.between(2, 30) }, () => random.pick(params));
  const type = `$wide${n}`;
  const operand = (result: TypeName) => {
    const choices = params.flatMap((param, i) => param === result ? [i] : []);
    return `(local.get ${random.pick(choices)})`;
  };
  const values = results.map((result) =>
    random.chance(40) ? operand(result) : `(${random.pick(OPERATIONS[result])} ${operand(result)} ${operand(result)})`
  );
  const passed = list(params.length, (i) => `(local.get ${i})`);
  const signature = `(param ${params.join(" ")}) (result ${results.join(" ")})`;
  const calls = [
    `(call $inner${n} ${passed})`,
    `(return_call $inner${n} ${passed})`,
    `(call_indirect (type ${type}) ${passed} (i32.const ${n}))`,
    `(return_call_indirect (type ${type}) ${passed} (i32.const ${n}))`,
    `(call_ref ${type} ${passed} (ref.func $inner${n}))`,
    `${passed} (block (type ${type}) (call $inner${n}))`,
    `${passed} (loop (type ${type}) (if (type ${type}) (local.get $flag) (then (call $inner${n})) (else (call $inner${n}))))`,
  ];
  const callers = calls.map((call, i) =>
    `(func (export "wide${n}_${i}") ${signature} (local $flag i32) ${REACH} ${call})`
  );
  return `(type ${type} (func ${signature}))
    (func $inner${n} (type ${type}) ${values.join(" ")})
    ${callers.join("\n")}`;
}

// ---- exceptions across instances ------------------------------------------------------------------------------------

/** Types that a text of ours can name, with the constant of each. */
const CONSTANTS: Readonly<Record<string, string>> = {
  i32: "(i32.const 1)",
  i64: "(i64.const 2)",
  f32: "(f32.const 3)",
  f64: "(f64.const 4)",
  externref: "(ref.null extern)",
  funcref: "(ref.null func)",
};
const isPlain = (types: readonly TypeName[]) => types.every((type) => type in CONSTANTS);

/**
 * A random module with exceptions, and one that calls its functions in try_table: it swallows, rethrows or replaces the
 * exceptions, and throws the first one's tags.
 */
export function exceptionsAcross(seed: number, features: readonly string[]): Binary[] {
  const random = new Random(seed ^ 0x6c078965);
  const [first] = generateModules(seed, features, ["exception-handling"]);
  const face = readInterface(first);
  const tags = face.exports.filter(({ kind, index }) => kind === "tag" && isPlain(face.tags[index].params));
  const callees = face.exports.filter(({ kind, index, name }) =>
    kind === "func" && name.startsWith("f") &&
    isPlain([...face.functions[index].params, ...face.functions[index].results])
  );
  if (tags.length === 0) return [first];
  const imports = [
    ...tags.map(({ name, index }, i) => `(import "m0" "${name}" (tag $t${i} ${params(face.tags[index].params)}))`),
    ...callees.map(({ name, index }, i) => {
      const { params: taken, results } = face.functions[index];
      return `(import "m0" "${name}" (func $f${i} ${params(taken)} (result ${results.join(" ")})))`;
    }),
  ];
  const payloads = tags.map(({ index }) => face.tags[index].params);
  const wrappers = callees.map(({ index }, i) => wrapper(random, i, face.functions[index], payloads));
  const throwers = payloads.map((types, i) =>
    `(func $throw${i} (export "throw${i}") ${types.map((type) => CONSTANTS[type]).join(" ")} (throw $t${i}))
     (func (export "catch${i}") (block $h ${result(types)} (try_table (catch $t${i} $h) (call $throw${i})) (return))
       ${types.map(() => "(drop)").join(" ")} ${REACH})`
  );
  return [first, binaryOf(`(module ${imports.join("\n")} ${REACHED} ${wrappers.join("\n")} ${throwers.join("\n")})`)];
}

const params = (types: readonly TypeName[]) => types.length === 0 ? "" : `(param ${types.join(" ")})`;
const result = (types: readonly string[]) => types.length === 0 ? "" : `(result ${types.join(" ")})`;

/** A function around function `n` of the first module. */
function wrapper(
  random: Random,
  n: number,
  { params: taken, results }: { params: readonly TypeName[]; results: readonly TypeName[] },
  payloads: readonly (readonly TypeName[])[],
): string {
  const tag = random.below(payloads.length);
  const call = `(call $f${n} ${list(taken.length, (i) => `(local.get ${i})`)})`;
  const constants = results.map((type) => CONSTANTS[type]).join(" ");
  const ends = [
    `${payloads[tag].map(() => "(drop)").join(" ")} ${REACH} ${constants}`, // swallows
    `${REACH} (throw $t${tag})`, // throws the payload again, as a new exception
  ];
  const caught = random.chance(30)
    ? `(block $h (result exnref) (try_table ${
      result(results)
    } (catch_all_ref $h) ${call}) (return)) ${REACH} (throw_ref)`
    : `(block $h ${result(payloads[tag])} (try_table ${result(results)} (catch $t${tag} $h) ${call}) (return))
       ${random.pick(ends)}`;
  return `(func (export "w${n}") ${params(taken)} ${result(results)} ${caught})`;
}

// ---- types of the garbage collector across modules ------------------------------------------------------------------

const STORAGES = ["i8", "i16", "i32", "i64", "f32", "f64", "(ref null $s)", "(ref null $a)"] as const;
type Storage = (typeof STORAGES)[number];
const isReference = (storage: Storage) => storage.startsWith("(");

/** Two modules that define the same types, exchange objects and functions, and test and cast those of the other. */
export function typesAcross(seed: number): Binary[] {
  const random = new Random(seed ^ 0x1f123bb5);
  const own: Storage[] = ["i32", ...Array.from({ length: random.between(1, 6) }, () => random.pick(STORAGES))];
  const more: Storage[] = Array.from({ length: random.between(1, 3) }, () => random.pick(STORAGES));
  const fields = (storages: readonly Storage[]) => storages.map((storage) => `(field (mut ${storage}))`).join(" ");
  const types = `(rec
    (type $s (sub (struct ${fields(own)})))
    (type $d (sub $s (struct ${fields([...own, ...more])})))
    (type $a (array (mut ${random.pick(["i8", "i16", "i32"])})))
    (type $f (func (param (ref null $s)) (result i32))))`;
  const make = (type: "$s" | "$d") =>
    `(struct.new ${type} ${
      [...own, ...(type === "$d" ? more : [])].map((storage) => fieldValue(random, storage)).join(" ")
    })`;
  const shift = list(random.below(4), (i) => `(type (func (param ${list(i + 1, () => "f32")})))`);
  const first = `(module ${types} ${REACHED}
    (global $g (export "g") (mut (ref null $s)) (ref.null $s))
    (table $tab (export "tab") 8 (ref null $s))
    (func (export "make") (param i32) (result (ref null $s))
      (if (result (ref null $s)) (i32.and (local.get 0) (i32.const 1)) (then ${make("$d")}) (else ${make("$s")})))
    (func (export "array") (param i32) (result (ref $a))
      (array.new $a (local.get 0) (i32.and (local.get 0) (i32.const 31))))
    (func (export "apply") (param (ref null $f) (ref null $s)) (result i32) (call_ref $f (local.get 1) (local.get 0)))
    (func (export "head") (type $f) ${REACH} (struct.get $s 0 (local.get 0)))
    (func (export "stored") (result i32) (struct.get $s 0 (ref.cast (ref $d) (global.get $g)))))`;
  const steps = Array.from(
    { length: random.between(4, 12) },
    (_, i) =>
      `(func (export "x${i}") (param i32) (result i32) (local $o (ref null $s)) ${REACH} ${crossing(random, make)})`,
  );
  const second = `(module ${shift} ${types}
    (import "m0" "make" (func $make (param i32) (result (ref null $s))))
    (import "m0" "array" (func $array (param i32) (result (ref $a))))
    (import "m0" "apply" (func $apply (param (ref null $f) (ref null $s)) (result i32)))
    (import "m0" "head" (func $head (type $f)))
    (import "m0" "g" (global $g (mut (ref null $s))))
    (import "m0" "tab" (table $tab 8 (ref null $s)))
    (func $mine (type $f) (i32.add (i32.const ${random.i32()}) (struct.get $s 0 (local.get 0))))
    ${REACHED}
    (elem declare func $mine $head)
    ${steps.join("\n")})`;
  return [binaryOf(first), binaryOf(second)];
}

function fieldValue(random: Random, storage: Storage): string {
  if (isReference(storage)) return storage === "(ref null $s)" ? "(ref.null $s)" : "(ref.null $a)";
  if (storage === "i64") return `(i64.const ${random.i64()})`;
  if (storage === "f32" || storage === "f64") return `(${storage}.const ${random.i32()})`;
  return `(i32.const ${random.i32()})`;
}

/** One way of using an object of the other module; leaves an i32. */
function crossing(random: Random, make: (type: "$s" | "$d") => string): string {
  const object = () => random.chance(50) ? make(random.pick(["$s", "$d"])) : "(call $make (local.get 0))";
  return random.pick([
    () => `(ref.test (ref $d) ${object()})`,
    () => `(call $head ${object()})`,
    () => `(struct.get $s 0 (ref.cast (ref $d) ${object()}))`,
    () => `(global.set $g ${object()}) (call $head (global.get $g))`,
    () =>
      `(table.set $tab (i32.and (local.get 0) (i32.const 7)) ${object()})
      (ref.is_null (table.get $tab (local.get 0)))`,
    () => `(call $apply (ref.func ${random.pick(["$mine", "$head"])}) ${object()})`,
    () => `(array.len (call $array (local.get 0)))`,
    () =>
      `(local.set $o ${object()}) (struct.set $s 0 (local.get $o) (local.get 0))
      (call $apply (ref.func $head) (local.get $o))`,
    () =>
      `(block $h (result (ref $d)) (drop (br_on_cast $h (ref null $s) (ref $d) ${object()})) (return (i32.const -1)))
      (ref.eq (global.get $g))`,
  ])();
}
