/**
 * On-stack replacement: baseline functions that are in a loop when their module is switched over continue in optimized
 * code at the loop's header. In: the module, and polls at loop headers of its baseline code. Out: frames that continue
 * in optimized code. Invariant: results do not depend on whether and when a frame continues there.
 *
 *     poll at a header ──▶ unknown: compiled by a helper thread ──▶ at a later poll: the frame is resumed in that code
 *
 * A poll that parks has all values of its frame in their homes, and the address at which it continues is in the parked
 * frame. It is replaced by that of code that calls the optimized rest of the function, and returns with its results.
 * The baseline frame stays below that call, as that of any caller, until the function returns.
 */
import type { LoopEntryTarget, Target } from "../codegen/target.ts";
import type { LoopEntryCode, LoopPlace } from "../compile/compile.ts";
import { THREAD } from "../abi/context_layout.ts";
import type { CodeArena } from "../host/memory/code_arena.ts";
import { CodeImage, placeImage } from "../link/image.ts";
import type { CodeJob, PlacedCode } from "../background/placing_job.ts";
import { CompiledModule } from "../runtime/code/compiled_module.ts";
import type { Store } from "../runtime/instance/store.ts";
import { TRAP } from "../base/traps.ts";

/** Milliseconds between two checks of a job in progress. */
const LOOK_MS = 1;
/**
 * Interval of the polls that search the stacks for baseline code, in milliseconds: at first, and at most. A poll costs
 * some ten microseconds.
 */
const FIRST_MS = 1;
const LONGEST_MS = 50;
/** Milliseconds for which one frame must be in loops before a loop of it is compiled, as long as the module is not. */
const EARLY_MS = 20;
/** The maximum number of loops of a module that are compiled; few loops of a program run for long. */
const MAX_LOOPS = 64;

/** The job of another thread, or the code if it was compiled on this thread. */
type Compilation = CodeJob | LoopEntryCode | undefined;

/** The parts of the compiler that are used here. */
interface LoopCompiler {
  readonly target: Target;
  /** The module's binary form. */
  readonly binary: Uint8Array;
  /** The time before which no loop is compiled. */
  readonly notBefore: number;
  /** Compiles a loop, or lets a helper thread compile it; undefined if neither is possible. */
  compile(place: LoopPlace): Compilation;
  /** The best code of a function so far. */
  addressOf(index: number): number;
  /** Whether all functions have optimized code; a thread may be busy with that otherwise. */
  isModuleDone(): boolean;
  /** The module whose code new calls run. */
  current(): CompiledModule;
  /** Called when frames may continue in the code of a loop that was requested at time `since`. */
  movedUp(part: CompiledModule, since: number): void;
}

/** A loop: in progress, entered at an address, or refused (0). */
type Loop = CodeJob | number;

export class LoopEntries {
  readonly #store: Store;
  readonly #baseline: CompiledModule;
  readonly #compiler: LoopCompiler;
  readonly #target: LoopEntryTarget;
  /** By the offset of the loop's opcode in the module. */
  readonly #loops = new Map<number, Loop>();
  /** The code of loops: frames may continue there as long as this object hands out its addresses. */
  readonly #modules: CompiledModule[] = [];
  #waiting = 0;
  /** The stack pointer of the frame that polled last, and the time since which no other one has. */
  #frame = 0;
  #frameSince = 0;
  #pause = FIRST_MS;
  /** The time of the next poll that searches the stacks for baseline code. */
  #next = 0;
  /** Frames that continue in optimized code, so far. */
  entered = 0;

  /** The loops of a module that is being switched over; undefined where the target does not support them. */
  static of(store: Store, baseline: CompiledModule, compiler: LoopCompiler): LoopEntries | undefined {
    const { loopEntry } = compiler.target;
    const isPossible = loopEntry !== undefined && !baseline.settings.deterministic && compiler.binary.length > 0;
    return isPossible ? new LoopEntries(store, baseline, compiler, loopEntry) : undefined;
  }

  private constructor(store: Store, baseline: CompiledModule, compiler: LoopCompiler, target: LoopEntryTarget) {
    this.#store = store;
    this.#baseline = baseline;
    this.#compiler = compiler;
    this.#target = target;
  }

  /**
   * Makes progress without blocking. `atPoll`: the innermost frame has parked at a poll. Returns the time of the next
   * call; undefined if no baseline code of the module is left on any stack.
   */
  advance(now: number, atPoll: boolean): number | undefined {
    for (const [at, loop] of this.#loops) if (typeof loop === "object") this.#follow(at, loop, now);
    if (atPoll && this.enterLoop(now)) this.#pause = FIRST_MS;
    if (this.#waiting > 0) return now + LOOK_MS;
    if (now < this.#next) return this.#next;
    if (!this.#store.thread.stack.holdsAddressIn(this.#baseline.image.base, this.#baseline.image.size)) {
      return undefined;
    }
    this.#pause = Math.min(this.#pause * 2, LONGEST_MS);
    this.#next = now + this.#pause;
    return this.#next;
  }

  /**
   * The innermost frame has parked at a poll. If it is at a loop header of baseline code, continues it in optimized
   * code, or requests that. Returns whether the frame is at such a header.
   */
  enterLoop(now: number): boolean {
    const place = this.#placeOfPoll();
    if (place === undefined) return false;
    if (now < this.#compiler.notBefore) return true;
    const known = this.#loops.get(place.at);
    if (known === undefined && !this.#isDue(now)) return true;
    const loop = known ?? this.#request(place, now);
    if (typeof loop === "number" && loop !== 0) this.#resumeAt(loop);
    return true;
  }

  /** True once the module is optimized; before, if the innermost frame seems to be the same for some time. */
  #isDue(now: number): boolean {
    if (this.#compiler.isModuleDone()) return true;
    const frame = this.#store.thread.state.word(THREAD.GUEST_SP);
    if (frame !== this.#frame) this.#frameSince = now;
    this.#frame = frame;
    return now - this.#frameSince >= EARLY_MS;
  }

  /** The loop at whose header the innermost frame polls. */
  #placeOfPoll(): LoopPlace | undefined {
    const { image } = this.#baseline;
    const pc = this.#store.thread.state.word(THREAD.TRAP_PC);
    if (!image.contains(pc)) return undefined;
    const site = image.trapSiteAt(pc, true);
    const LOOP = 0x03;
    if (site === undefined || site.code !== TRAP.INTERRUPTED || this.#compiler.binary[site.pos] !== LOOP) {
      return undefined;
    }
    const index = image.functionAt(pc);
    return index < 0 ? undefined : { index, at: site.pos, frameBytes: site.frame };
  }

  #request(place: LoopPlace, now: number): Loop {
    const loop = this.#loops.size < MAX_LOOPS ? this.#compile(place, now) : 0;
    if (typeof loop === "object") this.#waiting++;
    this.#loops.set(place.at, loop);
    return loop;
  }

  /** A loop that cannot be compiled continues in baseline code. */
  #compile(place: LoopPlace, now: number): Loop {
    const { arena } = this.#store.thread;
    try {
      const made = this.#compiler.compile(place);
      if (made === undefined) return 0;
      if (!("bytes" in made)) return made;
      return this.#adopt(made, placeImage(arena, made.bytes, made.tables), made, now);
    } catch {
      return 0;
    }
  }

  #follow(at: number, job: CodeJob, now: number): void {
    const code = job.advance(now);
    if (code === "waiting") return;
    this.#waiting--;
    this.#loops.set(at, code === "failed" ? 0 : this.#adoptPlaced(code, job.since));
  }

  #adoptPlaced({ description, base, codeBytes, tables, entry, jumps }: PlacedCode, since: number): number {
    return entry === undefined
      ? 0
      : this.#adopt(description, new CodeImage(base, codeBytes, tables), { entry, jumps }, since);
  }

  /** Completes a loop's code. Returns the address at which frames continue, or 0. */
  #adopt(
    description: PlacedCode["description"],
    image: CodeImage,
    { entry, jumps }: Pick<LoopEntryCode, "entry" | "jumps">,
    since: number,
  ): number {
    const { thread } = this.#store;
    const baseline = this.#baseline;
    const { target, addressOf } = this.#compiler;
    if (!writeJumps(thread.arena, image, jumps, target, addressOf)) {
      thread.arena.release(image.base, image.size);
      return 0;
    }
    const module = new CompiledModule(thread, baseline.valid, { ...description, image, sameAs: baseline });
    module.internal = baseline.internal;
    this.#store.addModule(module);
    baseline.keepsPart(module);
    this.#modules.push(module);
    for (const instance of this.#store.instances.ofModule(this.#compiler.current())) instance.retained.add(module);
    this.#compiler.movedUp(module, since);
    return image.base + entry;
  }

  /** Lets the frame that has parked at a poll continue at `address`. */
  #resumeAt(address: number): void {
    const { state, stack: { low, region } } = this.#store.thread;
    const at = state.word(THREAD.GUEST_SP) - low + this.#target.pollResume;
    const behind = region.word(at) - state.word(THREAD.TRAP_PC);
    // Tests may have moved it past the poll (poll_steps.ts).
    if (behind !== 0 && behind !== this.#target.pollBytes) return;
    region.setWord(at, address);
    this.entered++;
  }
}

/** Writes the jumps of an image to functions at `addressOf`. Returns false if one is too far away. */
export function writeJumps(
  arena: CodeArena,
  { base, size }: CodeImage,
  jumps: readonly number[],
  { writeEntryJump }: Pick<Target, "writeEntryJump">,
  addressOf: (index: number) => number,
): boolean {
  if (jumps.length === 0) return true;
  let written = true;
  arena.patch(base, size, (placed) => {
    for (let k = 0; k < jumps.length; k += 2) {
      written &&= writeEntryJump(placed, jumps[k], addressOf(jumps[k + 1]) - (base + jumps[k]));
    }
  });
  return written;
}
