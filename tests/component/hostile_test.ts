/**
 * Hostile component binaries: whatever the bytes are, decoding and validation end with a component or with one error of
 * the engine's classes that has an offset, in time that grows with the size of the input.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { decodeComponent } from "../../component/binary/decode.ts";
import { COMPONENT_HEADER } from "../../component/binary/section_ids.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";
import { printComponent } from "../../component/text/print_component.ts";
import { validateComponent } from "../../component/validate/validate_component.ts";
import { witOfComponent } from "../../component/wit/from_component.ts";
import { parseWit } from "../../component/wit/parse.ts";
import { printPackage } from "../../component/wit/print.ts";
import { resolveWit } from "../../component/wit/resolve.ts";
import { WaftError } from "../../engine/base/errors.ts";
import { mutateComponent, reject } from "../support/component_mutations.ts";
import {
  commandBytes,
  commandsOf,
  componentScripts,
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
} from "../support/component_suite.ts";

function section(id: number, ...content: (number | Uint8Array)[]): Uint8Array {
  const bytes = concat(...content.map((part) => typeof part === "number" ? Uint8Array.of(part) : part));
  return concat(Uint8Array.of(id), leb(bytes.length), bytes);
}

function leb(value: number): Uint8Array {
  const bytes: number[] = [];
  for (; value >= 0x80; value = Math.floor(value / 0x80)) bytes.push((value & 0x7f) | 0x80);
  return Uint8Array.from([...bytes, value]);
}

/** A type index, which is a signed integer in the binary format. */
function index(value: number): Uint8Array {
  const bytes = leb(value);
  if ((bytes[bytes.length - 1] & 0x40) === 0) return bytes;
  bytes[bytes.length - 1] |= 0x80;
  return concat(bytes, Uint8Array.of(0));
}

function concat(...parts: Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function rejects(bytes: Uint8Array, message: RegExp): void {
  assert.throws(() => validateComponent(decodeComponent(bytes)), (error) => {
    assert.ok(error instanceof WaftError, String(error));
    assert.match(error.message, message);
    assert.notEqual(error.place.offset, undefined);
    return true;
  });
}

Deno.test("deep nesting of components is an error", () => {
  let bytes: Uint8Array = COMPONENT_HEADER;
  for (let depth = 0; depth < 200; depth++) bytes = concat(COMPONENT_HEADER, section(4, bytes));
  rejects(bytes, /nested too deeply/);
});

Deno.test("deep nesting of component types is an error", () => {
  const levels = 20_000;
  const type = new Uint8Array(3 * levels).fill(0);
  for (let i = 0; i < levels; i++) type.set([0x41, 0x01, 0x01], 3 * i);
  rejects(concat(COMPONENT_HEADER, section(7, 0x01, type)), /nested too deeply/);
});

Deno.test("a long chain of lists is an error, not a deep recursion", () => {
  const count = 50_000;
  const types: Uint8Array[] = [Uint8Array.of(0x73)];
  for (let i = 0; i < count; i++) types.push(concat(Uint8Array.of(0x70), index(i)));
  rejects(concat(COMPONENT_HEADER, section(7, leb(count + 1), ...types)), /type nesting is too deep/);
});

Deno.test("types that double at every definition are an error before they are expanded", () => {
  const types: Uint8Array[] = [Uint8Array.of(0x6f, 0x02, 0x73, 0x73)];
  // A tuple of two lists of the type before.
  for (let i = 0; i < 60; i += 2) {
    types.push(concat(Uint8Array.of(0x70), index(i)));
    types.push(concat(Uint8Array.of(0x6f, 0x02), index(i + 1), index(i + 1)));
  }
  rejects(concat(COMPONENT_HEADER, section(7, leb(types.length), ...types)), /type size exceeds the limit/);
});

Deno.test("counts that exceed the input are errors before anything is allocated", () => {
  rejects(concat(COMPONENT_HEADER, section(7, leb(0xffff_ffff))), /length out of bounds/);
  rejects(concat(COMPONENT_HEADER, section(7, 0x01, 0x72, leb(0xffff_ffff))), /length out of bounds/);
  rejects(concat(COMPONENT_HEADER, section(8, 0x01, 0x00, 0x00, 0x00, leb(0xffff_fff0))), /length out of bounds/);
});

Deno.test("an invalid body of a core module is refused when it is compiled, with its offset in the component", () => {
  const text = `(component (core module) (component (core module (func (result i32)))))`;
  const bytes = componentToBinary(text);
  const refusal = (action: () => unknown) => {
    try {
      action();
    } catch (error) {
      if (error instanceof WaftError) return [error.name, error.message, error.place.offset];
      throw error;
    }
  };
  const validated = refusal(() => validateComponent(decodeComponent(bytes)));
  assert.equal(validated?.[0], "InvalidError");
  assert.deepEqual(refusal(() => compileComponent(NewEngine(), bytes)), validated);
});

Deno.test("an error in a core module has its offset in the component", () => {
  const module = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 0x0f, 0);
  const bytes = concat(COMPONENT_HEADER, section(0, 2, 0x68, 0x69), section(1, module));
  assert.throws(() => validateComponent(decodeComponent(bytes)), (error) => {
    assert.ok(error instanceof WaftError);
    assert.equal(bytes[error.place.offset ?? -1], 0x0f);
    return true;
  });
});

Deno.test({
  name: `mutated components are accepted or rejected with one error${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    const corpus = componentScripts().flatMap((script) =>
      commandsOf(script).flatMap(({ filename, module_type }) =>
        filename === undefined || module_type !== "binary" ? [] : [commandBytes(script, filename)]
      )
    );
    let rejected = 0;
    for (let seed = 0; seed < 4_000; seed++) {
      const bytes = mutateComponent(corpus[seed % corpus.length], seed);
      if (reject(bytes, seed) !== undefined) rejected++;
    }
    assert.ok(rejected > 1_000, `${rejected} mutations were rejected`);
  },
});

/** Runs `attempt` for many seeds; every failure must be one of the engine's errors. Returns their number. */
function failuresOf(seeds: number, attempt: (seed: number) => void): number {
  let failures = 0;
  for (let seed = 0; seed < seeds; seed++) {
    try {
      attempt(seed);
    } catch (error) {
      if (!(error instanceof WaftError)) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.stack : error}`);
      }
      assert.ok(!error.message.includes("\n"), error.message);
      failures++;
    }
  }
  return failures;
}

Deno.test({
  name: `mutated text and mutated components that print are read or rejected with one error${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    const corpus = commandsOf("linking-unit").flatMap(({ type, filename }) =>
      filename === undefined || type.startsWith("assert_") ? [] : [commandBytes("linking-unit", filename)]
    );
    const texts = corpus.map((bytes) => new TextEncoder().encode(printComponent(decodeComponent(bytes))));
    const text = failuresOf(1_000, (seed) => {
      validateComponent(decodeComponent(componentToBinary(mutateComponent(texts[seed % texts.length], seed))));
    });
    const printed = failuresOf(1_000, (seed) => {
      const component = decodeComponent(mutateComponent(corpus[seed % corpus.length], seed));
      printComponent(component);
      const { root, packages } = witOfComponent(validateComponent(component));
      printPackage(root, packages.values());
    });
    assert.ok(text > 500 && printed > 500, `${text} and ${printed} rejections`);
  },
});

const WIT = new TextEncoder().encode(
  `package a:b@1.0.0; interface i { resource r { constructor(a: u32); m: func() -> r; }
  record rec { a: list<u8, 4>, b: option<r> } variant v { x, y(tuple<u8, string>) } flags f { p, q } type t = map<u8, v>;
  @since(version = 1.0.0) g: async func(a: rec, b: borrow<r>) -> result<stream<u8>, t>; }
  world w { import i; export x: interface { use i.{rec as c}; f: func(a: c); } include z with { o as p } }
  world z { import o: func(); }`,
);

Deno.test("mutated WIT is read or rejected with one error", () => {
  const rejected = failuresOf(2_000, (seed) => {
    const text = new TextDecoder().decode(mutateComponent(WIT, seed));
    const { root, packages } = resolveWit([parseWit({ file: "hostile.wit", text })]);
    printPackage(root, packages.values());
  });
  assert.ok(rejected > 1_000, `${rejected} rejections`);
});

Deno.test("resource types that double at every definition are an error before they are made", () => {
  let text = `(component (type $t0 (instance (export "r" (type (sub resource)))))`;
  for (let i = 1; i <= 40; i++) {
    const exports = `(export "a" (instance (type $y))) (export "b" (instance (type $y)))`;
    text += `(type $t${i} (instance (alias outer 1 ${i - 1} (type $y)) ${exports}))`;
  }
  rejects(componentToBinary(`${text})`), /too many resource types/);
});

Deno.test("many core modules are an error before any is compiled", () => {
  const modules = (count: number) => `(component ${"(core module) ".repeat(count)})`;
  validateComponent(decodeComponent(componentToBinary(modules(1000))));
  rejects(componentToBinary(modules(1001)), /too many core modules/);
  rejects(componentToBinary(`(component ${modules(600)} ${modules(600)})`), /too many core modules/);
});

Deno.test("many instances of one large type are an error before their types are copied", () => {
  const resources = Array.from({ length: 99 }, (_, k) => `(export "r${k}" (type (sub resource)))`).join(" ");
  const imports = Array.from({ length: 200 }, (_, k) => `(import "i${k}" (instance (type $t)))`).join(" ");
  rejects(componentToBinary(`(component (type $t (instance ${resources})) ${imports})`), /too many resource types/);
  const types = Array.from({ length: 90 }, (_, k) => `(export "t${k}" (type (eq $v)))`).join(" ");
  const large = `(type $v (tuple ${"u8 ".repeat(900)})) (type $t (instance (alias outer 1 $v (type $v)) ${types}))`;
  const uses = Array.from({ length: 2000 }, () => `(instance (instantiate $c (with "i" (instance $i))))`).join(" ");
  const text = `(component ${large} (import "i" (instance $i (type $t)))
    (component $c (alias outer 1 $t (type $u)) (import "i" (instance (type $u)))) ${uses})`;
  rejects(componentToBinary(text), /the types of all instances together are too large/);
});
