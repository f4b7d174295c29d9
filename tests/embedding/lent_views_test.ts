/**
 * Views of memories that programs try to take away. Where the runtime can prevent it, the attempt is an error;
 * elsewhere the pages live as long as an ArrayBuffer has them. A retained view never writes to another memory, and
 * address space is reclaimed.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { MessageChannel } from "node:worker_threads";
import { NewEngine } from "@waft/engine";
import { WebAssembly } from "@waft/engine/webassembly";
import { settle } from "../support/collect_garbage.ts";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";

/** Ways to move a buffer's pages to another. */
const WAYS: Readonly<Record<string, (buffer: ArrayBuffer) => ArrayBuffer>> = {
  "transfer": (buffer) => buffer.transfer(),
  "transferToFixedLength": (buffer) => buffer.transferToFixedLength(),
  "structuredClone": (buffer) => structuredClone(buffer, { transfer: [buffer] }),
  "postMessage": (buffer) => {
    const { port1, port2 } = new MessageChannel();
    try {
      port1.postMessage(buffer, [buffer]);
      return buffer;
    } finally {
      port1.close();
      port2.close();
    }
  },
};

interface Lender {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): unknown };
  close(): void;
}

const MODULE = `(module (memory (export "m") 1 20) (data (i32.const 0) "\\07"))`;

/** Kinds of memory, by the behaviour of their buffers. */
const LENDERS: Record<string, () => Lender> = {};
for (const bounds of ["guard", "explicit"] as const) {
  const module = NewEngine({ bounds }).compile(MODULE);
  LENDERS[bounds] = () => {
    const instance = module.instantiate();
    return { memory: instance.exports["m"] as Lender["memory"], close: () => instance.close() };
  };
}
const bytes = new Uint8Array(NewEngine().parse(MODULE).bytes);
LENDERS["WebAssembly"] = () => {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes));
  return { memory: instance.exports["m"] as unknown as Lender["memory"], close: () => {} };
};

for (const [lender, make] of Object.entries(LENDERS)) {
  Deno.test(`${lender}: pages that a program tries to move to another buffer`, async () => {
    const moved: Uint8Array[] = [];
    const take = (way: string, how: (buffer: ArrayBuffer) => ArrayBuffer, grown: boolean) => {
      const { memory, close } = make();
      assert.equal(new Uint8Array(memory.buffer)[0], 7);
      try {
        moved.push(new Uint8Array(how(memory.buffer)));
      } catch (error) {
        assert.ok(["TypeError", "DataCloneError"].includes((error as Error).name), `${way}: ${error}`);
      }
      if (grown) memory.grow(3);
      close();
    };
    for (const [way, how] of Object.entries(WAYS)) for (const grown of [false, true]) take(way, how, grown);
    await settle();
    const left = moved.filter((view) => view.length > 0); // empty where it was copied and growth detached the source
    for (const view of left) view.fill(255);
    for (let n = 0; n < 20; n++) {
      const { memory, close } = make();
      memory.grow(2);
      const view = new Uint8Array(memory.buffer);
      assert.equal(view.reduce((sum, byte) => sum + byte, 0), 7, "no other memory was written to");
      close();
    }
    for (const view of left) assert.ok(view.every((byte) => byte === 255));
  });
}

Deno.test("a buffer of the engine's own memories cannot be moved where there are detach keys", () => {
  const { memory } = LENDERS["guard"]();
  const buffer = memory.buffer;
  // Bun has no keys, Node 20 no transfer
  if ((globalThis as { Bun?: unknown }).Bun !== undefined || buffer.transfer === undefined) return;
  assert.throws(() => buffer.transfer(), TypeError);
  assert.throws(() => structuredClone(buffer, { transfer: [buffer] }));
  assert.equal(memory.buffer, buffer);
  assert.equal(new Uint8Array(structuredClone(buffer))[0], 7, "a copy is one");
});

/** Kinds of views, of which each alone keeps the pages of a buffer; the value of their first byte is 7. */
const VIEWS: Readonly<Record<string, (buffer: ArrayBuffer) => () => readonly number[]>> = {
  "buffer": (buffer) => () => [...new Uint8Array(buffer, 0, 4)],
  "typed array": (buffer) => {
    const words = new Uint16Array(buffer, 0, 2);
    return () => [words[0], 0, words[1], 0];
  },
  "subarray": (buffer) => {
    const part = new Uint8Array(buffer).subarray(0, 4);
    return () => [...part];
  },
  "data view": (buffer) => {
    const view = new DataView(buffer, 0, 4);
    return () => [0, 1, 2, 3].map((at) => view.getUint8(at));
  },
  "Buffer": (buffer) => {
    const bytes = Buffer.from(buffer, 0, 4);
    return () => [...bytes];
  },
};

Deno.test("a view keeps the contents of a collected memory", async () => {
  const kept: [string, () => readonly number[]][] = [];
  for (const [lender, make] of Object.entries(LENDERS)) {
    for (const [kind, view] of Object.entries(VIEWS)) {
      kept.push([`${lender}, ${kind}`, view(make().memory.buffer)]);
      const { memory } = make();
      memory.grow(3);
      kept.push([`${lender}, ${kind}, grown`, view(memory.buffer)]);
    }
  }
  await settle();
  for (let n = 0; n < 40; n++) {
    for (const make of Object.values(LENDERS)) new Uint8Array(make().memory.buffer).fill(255);
  }
  await settle();
  for (const [name, read] of kept) assert.deepEqual(read(), [7, 0, 0, 0], name);
});

Deno.test("closing and resetting a memory take the pages of its views", () => {
  const module = NewEngine().compile(MODULE);
  for (const end of ["close", "reset"] as const) {
    const instance = module.instantiate();
    const memory = instance.exports["m"] as Lender["memory"];
    memory.grow(1);
    const view = new Uint8Array(memory.buffer);
    assert.equal(view[0], 7);
    instance[end]();
    assert.ok(view.every((byte) => byte === 0), end);
  }
});

Deno.test("growing detaches the buffers of the WebAssembly interface, on every host", () => {
  const { memory } = LENDERS["WebAssembly"]();
  const { buffer } = memory;
  const view = new Uint8Array(buffer);
  memory.grow(1);
  assert.equal(buffer.byteLength, 0);
  assert.equal(view.length, 0);
  assert.equal(new Uint8Array(memory.buffer)[0], 7);
});

Deno.test({
  name: "address space comes back when views have been collected",
  ignore: process.platform !== "linux",
  fn: () => {
    const [program, first] = hostCommand(fileURLToPath(new URL("./lent_views_program.ts", import.meta.url)));
    const { status, stdout, stderr } = spawnSync(program, first, { encoding: "utf8", timeout: CHILD_TIMEOUT });
    assert.equal(status, 0, stderr);
    const { before, after } = JSON.parse(stdout) as Record<"before" | "after", number>;
    assert.ok(after < before + 8 * 40, `${before} GiB, then ${after}`);
  },
});
