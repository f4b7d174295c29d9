/** Handles among the arguments of a call that cannot be made, because a later argument cannot be lowered. */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";
import { newComponent } from "../../component/build/new_component.ts";
import { compileBinary } from "../../component/component.ts";
import { parseWit } from "../../component/wit/parse.ts";
import { resolveWit } from "../../component/wit/resolve.ts";

const engine = NewEngine({ tier: "baseline" });

/** `take` receives a resource of its own, an owned and a borrowed one of the host, and a string. */
const WIT = (mark: string) =>
  `package t:t; interface files { resource file; }
  interface shelf { use files.{file}; resource book { constructor(n: u32); }
    take: ${mark}func(b: book, f: file, g: borrow<file>, title: string) -> u32; }
  world w { import files; export shelf; }`;

/** Drops the handles; returns the index of the host's owned one. */
const TAKE = `
  (import "[export]t:t/shelf" "[resource-new]book" (func $new (param i32) (result i32)))
  (import "[export]t:t/shelf" "[resource-drop]book" (func $drop (param i32)))
  (import "t:t/files" "[resource-drop]file" (func $close (param i32)))
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "t:t/shelf#[constructor]book") (param i32) (result i32) (call $new (local.get 0)))
  (func $take (param i32 i32 i32)
    (call $drop (local.get 0)) (call $close (local.get 1)) (call $close (local.get 2)))`;
const SYNC = `(module ${TAKE}
  (func (export "t:t/shelf#take") (param i32 i32 i32 i32 i32) (result i32)
    (call $take (local.get 0) (local.get 1) (local.get 2)) (local.get 1)))`;
const ASYNC = `(module
  (import "[export]t:t/shelf" "[task-return]take" (func $return (param i32))) ${TAKE}
  (func (export "[callback][async-lift]t:t/shelf#take") (param i32 i32 i32) (result i32) unreachable)
  (func (export "[async-lift]t:t/shelf#take") (param i32 i32 i32 i32 i32) (result i32)
    (call $take (local.get 0) (local.get 1) (local.get 2)) (call $return (local.get 1)) (i32.const 0)))`;

interface Shelf {
  readonly Book: { new (n: number): { [Symbol.dispose](): void } };
  take(book: object, file: object, other: object, title: unknown): number | Promise<number>;
}

for (const [mark, core] of [["", SYNC], ["async ", ASYNC]]) {
  const [world] = resolveWit([parseWit({ file: "w.wit", text: WIT(mark) })]).root.worlds.values();
  const component = compileBinary(engine, newComponent(engine.parse(core).bytes, { world }));

  Deno.test(`handles of a call that cannot be made remain the host's: ${mark}func`, async () => {
    const disposed: string[] = [];
    class File {
      constructor(readonly name: string) {}
      [Symbol.dispose]() {
        disposed.push(this.name);
      }
    }
    const { exports } = component.instantiate<{ shelf: Shelf }>({}, { "t:t/files": { File } });
    const { shelf } = exports;
    const file = new File("a");
    const other = new File("b");
    const first = await shelf.take(new shelf.Book(1), file, other, "title");
    assert.deepEqual(disposed, ["a"]);
    const book = new shelf.Book(2);
    for (let k = 0; k < 3; k++) {
      await assert.rejects(async () => await shelf.take(book, file, other, Symbol("no text")), TypeError);
      await assert.rejects(async () => await shelf.take(book, file, 5 as unknown as object, "title"), TypeError);
    }
    assert.deepEqual(disposed, ["a"]);
    // The book is still owned here, and the tables have no unreachable entries.
    assert.equal(await shelf.take(book, file, other, "title"), first);
    assert.deepEqual(disposed, ["a", "a"]);
    await assert.rejects(async () => await shelf.take(book, file, other, "title"), /passed on or disposed of/);
  });

  Deno.test(`an argument that calls the component while it is lowered, and fails: ${mark}func`, async () => {
    class File {}
    const { exports } = component.instantiate<{ shelf: Shelf }>({}, { "t:t/files": { File } });
    const { shelf } = exports;
    const [file, book] = [new File(), new shelf.Book(1)];
    const title = {
      toString(): string {
        throw new RangeError("no title");
      },
    };
    await assert.rejects(async () => await shelf.take(book, file, file, title));
    assert.equal(typeof await shelf.take(book, file, file, "title"), "number");
  });
}
