/**
 * Tokens that do not come from `share`: all of them are refused, also from and in other Workers. A token has the power
 * of native code, since it names addresses.
 */
import assert from "node:assert/strict";
import { host, Memory, Module, NewEngine, type SharedMemoryToken, type SharedModuleToken } from "@waft/engine";
import { randoms } from "../support/randoms.ts";
import { Member } from "./team.ts";

/** A buffer with the contents of `buffer` elsewhere. */
function copyOf(buffer: SharedArrayBuffer): SharedArrayBuffer {
  const copy = new SharedArrayBuffer(buffer.byteLength);
  new Uint8Array(copy).set(new Uint8Array(buffer));
  return copy;
}

/** `count` texts that differ from `text` in one character. */
function misprints(text: string, count: number): string[] {
  const random = randoms(13);
  return Array.from({ length: count }, () => {
    const at = random(text.length);
    const letters = ["0", "1", "9", "}", "true", "null", ""].filter((letter) => letter !== text[at]);
    return text.slice(0, at) + letters[random(letters.length)] + text.slice(at + 1);
  });
}

/** An object whose fields can be read once; then each has the value of `second`. */
function changing<Token extends object>(token: Token, second: Partial<Token>): Token {
  const read = new Set<PropertyKey>();
  return new Proxy(token, {
    get: (target, name) => {
      if (!(name in second) || !read.has(name)) return read.add(name), Reflect.get(target, name);
      return Reflect.get(second, name);
    },
  });
}

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: a forged token of a shared memory is refused`, () => {
    const memory = host.sharedMemory(1, 4, bounds);
    const token = memory.share();
    assert.equal(Memory.fromShared(token).pages, 1);
    const other = host.sharedMemory(1, 4, bounds).share();
    const longer = new SharedArrayBuffer(16);
    new BigInt64Array(longer).fill(1n << 30n);
    const forged: unknown[] = [
      { ...token, pages: new SharedArrayBuffer(65536) },
      { ...token, pages: new SharedArrayBuffer(65536, { maxByteLength: 131072 }) },
      { ...token, pages: other.pages },
      { ...token, pages: token.control, control: token.pages },
      { ...token, pages: new Proxy(token.pages, {}) },
      { ...token, control: new SharedArrayBuffer(0) },
      { ...token, control: longer },
      { ...token, control: copyOf(token.control) },
      { ...token, control: other.control },
      { ...token, seal: other.seal },
      { ...token, seal: [token.seal] },
      { ...token, seal: undefined },
      { ...token, description: JSON.parse(token.description) },
      { ...token, description: { toString: () => token.description } },
      { ...token, waft: "module" },
      ...misprints(token.description, 500).map((description) => ({ ...token, description })),
    ];
    for (const [k, value] of forged.entries()) {
      assert.throws(() => Memory.fromShared(value as SharedMemoryToken), TypeError, `token ${k}`);
    }
    const second = { pages: new SharedArrayBuffer(0), control: longer, description: "{}" };
    const adopted = Memory.fromShared(changing(token, second));
    assert.equal(adopted.buffer, memory.buffer, "the fields of a token are read once");
    assert.equal(adopted.byteLength, 65536);
  });
}

for (const interruptible of [false, true]) {
  Deno.test(`a forged token of ${interruptible ? "an interruptible" : "a"} module is refused`, () => {
    const text = (value: number) =>
      `(module (memory (export "m") 1)
      (func (export "f") (param i32) (result i32) (i32.add (i32.load (local.get 0)) (i32.const ${value}))))`;
    const engine = NewEngine({ interruptible });
    const [module, otherModule] = [1, 2].map((value) => engine.compile(text(value)));
    const [token, other] = [module.share(), otherModule.share()];
    const described = JSON.parse(token.description);
    const changes = { base: 4096, size: 1 << 30, explicitBounds: true, codeOffset: 0, layout: {}, features: {} };
    const forged: unknown[] = [
      ...Object.entries(changes).map(([name, value]) => ({
        ...token,
        description: JSON.stringify({ ...described, [name]: value }),
      })),
      ...token.buffers.flatMap((buffer, k) =>
        [copyOf(buffer), other.buffers[k], new SharedArrayBuffer(buffer.byteLength + 4), new ArrayBuffer(8), null].map(
          (replacement) => ({ ...token, buffers: token.buffers.with(k, replacement as SharedArrayBuffer) }),
        )
      ).filter(({ buffers }) => buffers.some((buffer, k) => buffer !== token.buffers[k] && buffer?.byteLength !== 0)),
      { ...token, buffers: token.buffers.toReversed() },
      { ...token, buffers: token.buffers.slice(1) },
      { ...token, buffers: [...token.buffers, new SharedArrayBuffer(8)] },
      { ...token, buffers: Object.fromEntries(token.buffers.entries()) },
      { ...token, seal: other.seal },
      { ...token, seal: undefined },
      { ...token, description: other.description },
      ...misprints(token.description, 500).map((description) => ({ ...token, description })),
    ];
    for (const [k, value] of forged.entries()) {
      assert.throws(() => Module.fromShared(value as SharedModuleToken), TypeError, `token ${k}`);
    }
    const adopted = Module.fromShared(changing(token, { buffers: [], description: "{}", seal: "" }));
    assert.equal(adopted.instantiate().call({}, "f", 0), 1);
    for (const each of [module, otherModule]) each.unshare();
  });
}

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: tokens that one Worker forges are refused in another one and here`, async () => {
    const module = NewEngine({ bounds }).compile(`(module (import "env" "memory" (memory 1 4 shared))
      (func (export "load") (param i32) (result i32) (i32.load (local.get 0))))`);
    const memory = host.sharedMemory(1, 4, bounds);
    const [forger, victim] = [new Member(), new Member()];
    try {
      const genuine = { module: module.share(), memory: memory.share() };
      const forged = await forger.ask({ kind: "forge", ...genuine }) as unknown[];
      const names = await victim.ask({ kind: "adopt", values: forged }) as string[];
      assert.equal(names.length, forged.length);
      for (const [k, name] of names.entries()) assert.match(name, /^(Type|Range)?Error$/, `token ${k}`);
      for (const [k, value] of forged.slice(0, 4).entries()) {
        assert.throws(() => Memory.fromShared(value as ReturnType<Memory["share"]>), TypeError, `token ${k}`);
      }
      await victim.ask({ kind: "instantiate", ...genuine });
      new Int32Array(memory.buffer)[1] = 77;
      assert.equal(await victim.call("load", 4), 77, "the genuine tokens still work");
    } finally {
      forger.terminate();
      victim.terminate();
      module.unshare();
    }
  });
}
