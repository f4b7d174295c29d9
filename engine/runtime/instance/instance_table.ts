/**
 * The instances of a store. In: new instances with their numbers, addresses of VM contexts and of function records.
 * Out: the instance of each. The table holds instances weakly; their finalizers take them out.
 *
 * Invariant: the instance that was found last stays alive until the next safepoint at most (`forgetLast`).
 */
import { CONTEXT, RECORD } from "../../abi/context_layout.ts";
import { Bug } from "../../base/errors.ts";
import type { Host } from "../../host/host.ts";
import type { Weak } from "../../host/finalizers.ts";
import type { ContextBlock } from "../memory/context_arena.ts";
import { NativeRegion } from "../memory/native_region.ts";

/** An instance, as the table knows it. */
interface Placed {
  /** Where its VM context and its function records are. */
  readonly block: ContextBlock;
  readonly module: object;
}

export class InstanceTable<I extends Placed> {
  readonly #host: Host;
  readonly #instances = new Map<number, Weak<I>>();
  #nextNumber = 1;
  /** The number of instances that are neither closed nor collected. */
  open = 0;
  readonly #closed = new Set<number>();
  /** Cache of the last lookup; cleared at safepoints, so that it does not keep the instance alive. */
  #lastContext = 0;
  #lastInstance: I | undefined;
  /** The number of the instance that was found last. Unlike #lastInstance it is kept across safepoints. */
  #lastNumber = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** A number that no instance has had. */
  newNumber(): number {
    return this.#nextNumber++;
  }

  add(number: number, instance: Weak<I>): void {
    this.open++;
    this.#instances.set(number, instance);
  }

  /** Called when the instance has been collected. */
  drop(number: number): void {
    if (this.#instances.delete(number) && !this.#closed.delete(number)) this.open--;
  }

  /** Records that the instance was closed: it no longer counts as open. */
  close(number: number): void {
    if (this.#closed.has(number)) return;
    this.#closed.add(number);
    this.open--;
  }

  /** The instances that JavaScript has not collected. */
  *live(): Generator<I> {
    for (const reference of this.#instances.values()) {
      const instance = reference.deref();
      if (instance !== undefined) yield instance;
    }
  }

  /** The instances that run the code of `module`. */
  ofModule(module: object): I[] {
    return [...this.live()].filter((instance) => instance.module === module);
  }

  /** The instance of a VM context. */
  of(context: number): I {
    if (context === this.#lastContext) return this.#lastInstance!;
    const instance = this.at(context);
    if (instance === undefined) throw new Bug(`Context ${context.toString(16)} has no instance`);
    this.#lastContext = context;
    this.#lastInstance = instance;
    return instance;
  }

  /** The instance of the context at an address; undefined if that context has none. */
  at(context: number): I | undefined {
    if (context === this.#lastContext) return this.#lastInstance;
    // Creating a view of the context is the slowest step, so the instance that was found last is tried first.
    const last = this.#instances.get(this.#lastNumber)?.deref();
    if (last !== undefined && last.block.address === context) return last;
    this.#lastNumber = new NativeRegion(this.#host, context, CONTEXT.SIZE).i32[CONTEXT.INSTANCE >> 2];
    return this.#instances.get(this.#lastNumber)?.deref();
  }

  /** The instance that owns the function record at `address`. */
  ofRecord(address: number): I {
    // References of one holder are mostly to functions of one instance: creating a view is the slowest step.
    const last = this.#instances.get(this.#lastNumber)?.deref();
    if (last !== undefined && contains(last.block, address)) return last;
    this.#lastNumber = new Uint32Array(this.#host.view(address, RECORD.SIZE))[RECORD.OWNER >> 2];
    const owner = this.#instances.get(this.#lastNumber)?.deref();
    if (owner === undefined) throw new Bug(`The function record at ${address.toString(16)} has no instance`);
    return owner;
  }

  /** Called at a safepoint: no longer keeps the instance alive that was found last. */
  forgetLast(): void {
    this.#lastContext = 0;
    this.#lastInstance = undefined;
  }
}

function contains({ address: start, size }: ContextBlock, address: number): boolean {
  return address >= start && address < start + size;
}
