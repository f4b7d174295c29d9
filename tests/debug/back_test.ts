/**
 * Steps back by instructions: from the end of a program to its beginning they stop at the places of the steps forward,
 * in reverse order. The programs have recursion, loops in loops, empty loops, exceptions, tail calls and a start
 * function.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { parseModule } from "@waft/engine/internal/text_format";
import { Program } from "../../project/debug/program.ts";
import { Session } from "../../project/debug/session.ts";

const PROGRAMS: Readonly<Record<string, string>> = {
  "recursion and a start function": `(module (global $g (mut i32) (i32.const 0))
    (func $start (global.set $g (i32.const 3))) (start $start)
    (func $f (param i32) (result i32)
      (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
        (else (i32.add (call $f (i32.sub (local.get 0) (i32.const 1))) (call $f (i32.sub (local.get 0) (i32.const 2)))))))
    (func (export "run") (result i32) (call $f (global.get $g))))`,
  "loops": `(module (func (export "run") (result i32) (local $i i32) (local $j i32) (local $s i32)
    (local.set $i (i32.const 2))
    (loop $a (local.set $j (i32.const 2)) (loop $b (loop $c (local.set $s (i32.add (local.get $s) (local.get $j)))
        (br_if $b (local.tee $j (i32.sub (local.get $j) (i32.const 1))))))
      (br_if $a (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (local.get $s)))`,
  "exceptions and tail calls": `(module (tag $t (param i32))
    (func $throw (param i32) (throw $t (local.get 0)))
    (func $last (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
    (func $tail (param i32) (result i32) (return_call $last (local.get 0)))
    (func (export "run") (result i32)
      (block $h (result i32) (try_table (catch $t $h) (call $throw (i32.const 7))) (i32.const 0))
      (drop) (call $tail (i32.const 1))))`,
};

/** A session that runs from stop to stop. */
class Walk {
  readonly session: Session;
  #waiting: ((isStopped: boolean) => void) | undefined;

  constructor(text: string) {
    const { bytes } = parseModule(text);
    const program = new Program("program.wat", bytes, text);
    const module = NewEngine({ interruptible: true, deterministic: true }).compile(program.instrumented.bytes);
    const again = () => module.instantiate();
    const runs = { instance: again(), again, canRepeat: () => true };
    this.session = new Session(program, runs, { stopped: () => this.#waiting?.(true) }, true);
  }

  /** Runs the program to its first location. A run that is terminated rejects. */
  async start(): Promise<void> {
    await this.next(() => {
      this.session.run([{ name: "run", args: [] }], {}).then(() => this.#waiting?.(false), () => {});
    });
  }

  /** Resolves to true at the next stop, to false at the end. */
  async next(action: () => void): Promise<boolean> {
    const arrived = new Promise<boolean>((resolve) => this.#waiting = resolve);
    action();
    return await arrived;
  }

  /** The location, and the functions on the stack. */
  get place(): string {
    const frames = this.session.frames();
    return `${frames[0]?.location} in ${frames.map(({ func }) => func.index).join(" < ")}`;
  }
}

for (const [name, text] of Object.entries(PROGRAMS)) {
  Deno.test(`steps back are the steps forward in reverse: ${name}`, async () => {
    const walk = new Walk(text);
    await walk.start();
    const places = [walk.place];
    const { session } = walk;
    // The last step ends the program; a second walk stops before it.
    while (await walk.next(() => session.step("into", true))) places.push(walk.place);
    assert.ok(places.length > 10, `${places.length} steps`);
    const other = new Walk(text);
    await other.start();
    for (let k = 1; k < places.length; k++) await other.next(() => other.session.step("into", true));
    for (let k = places.length - 2; k >= 0; k--) {
      other.session.requireBack();
      assert.ok(await other.next(() => other.session.back("instruction")));
      assert.equal(other.place, places[k], `step ${k} of ${places.length}`);
    }
    assert.throws(() => other.session.requireBack(), /the beginning of the program/);
    assert.ok(await other.next(() => other.session.step("into", true)));
    assert.equal(other.place, places[1]);
    other.session.terminate();
  });
}
