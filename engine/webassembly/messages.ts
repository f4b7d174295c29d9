/**
 * Modules and shared memories in messages between Workers (JavaScript API, "serializable objects"). In: a value that a
 * program posts or clones. Out: a value that the host can clone, and on the receiving side the program's value, with
 * Module and Memory objects of the receiving realm. The machine code and the pages are shared, since Workers are
 * threads of one process.
 *
 * A message with such objects becomes an envelope: the value itself, the list of these objects, and a token for each
 * (Module.share, Memory.share: buffers shared by all threads). Cloning preserves object identity, so the clones in the
 * list are the ones in the value, and each is converted according to its token.
 *
 * Invariants: any other object of the namespace in a message is a DataCloneError, as in the specification; and a
 * message without tokens of this process (host/seal.ts) is never opened, because any Worker can send one.
 */
import { Memory as RuntimeMemory } from "../runtime/memory/memory.ts";
import { Module as EngineModule, type SharedMemoryToken, type SharedModuleToken } from "../api/engine.ts";
import { isWasmException } from "../runtime/exceptions/exception.ts";
import { TAGS } from "./exception.ts";
import { GLOBALS } from "./global.ts";
import { INSTANCES } from "./instance.ts";
import { adoptMemory, MEMORIES, Memory } from "./memory.ts";
import { Module, type ModuleInside, moduleLimits, MODULES } from "./module.ts";
import { FUNCTIONS } from "./suspending.ts";
import { TABLES } from "./table.ts";

/** A module in a message. */
interface ModuleToken extends Omit<ModuleInside, "module"> {
  readonly kind: "module";
  readonly module: SharedModuleToken;
}

/** A shared memory in a message. */
interface MemoryToken {
  readonly kind: "memory";
  readonly memory: SharedMemoryToken;
}

type Token = ModuleToken | MemoryToken;

/** The property by which an envelope is recognized. */
const MARK = "waft:message";

interface Envelope {
  readonly [MARK]: 1;
  readonly value: unknown;
  readonly objects: readonly object[];
  readonly tokens: readonly Token[];
}

const OPENED = new WeakSet<object>();
/** Envelopes created in this realm: posting functions may call one another. */
const CLOSED = new WeakSet<object>();
/** Objects of these interfaces belong to one realm. */
const LOCAL = [INSTANCES, TABLES, GLOBALS, TAGS, FUNCTIONS];

function refuse(name: string): never {
  throw new DOMException(`A WebAssembly.${name} could not be cloned.`, "DataCloneError");
}

/** The token of an object of the namespace; undefined for every other object. Throws DataCloneError. */
function tokenOf(object: object): Token | undefined {
  const inside = MODULES.of(object);
  if (inside !== undefined) {
    const { module, customs, strings } = inside;
    return { kind: "module", module: module.share(), customs, strings };
  }
  const memory = MEMORIES.of(object);
  if (memory !== undefined) {
    return memory.shared === undefined
      ? refuse("Memory that is not shared")
      : { kind: "memory", memory: memory.share() };
  }
  for (const slot of LOCAL) if (slot.of(object) !== undefined) refuse(slot.name);
  return isWasmException(object) ? refuse("Exception") : undefined;
}

/** The objects that a clone of `object` would reach from it. */
function childrenOf(object: object): Iterable<unknown> {
  if (object instanceof Map) return [...object].flat();
  if (object instanceof Set) return object;
  if (ArrayBuffer.isView(object) || object instanceof ArrayBuffer || object instanceof SharedArrayBuffer) return [];
  return Object.values(object);
}

/**
 * The value to post for `value`: an envelope, or `value` itself if it holds no objects of the namespace. Throws
 * DataCloneError.
 */
export function toMessage(value: unknown): unknown {
  if (typeof value !== "object" || value === null || CLOSED.has(value)) return value;
  const objects: object[] = [];
  const tokens: Token[] = [];
  const seen = new Set<object>([value]);
  for (const object of seen) {
    // Node's own message to a new Worker contains its data.
    if (CLOSED.has(object)) continue;
    const token = tokenOf(object);
    if (token !== undefined) {
      objects.push(object);
      tokens.push(token);
      continue;
    }
    for (const child of childrenOf(object)) if (typeof child === "object" && child !== null) seen.add(child);
  }
  if (tokens.length === 0) return value;
  const envelope: Envelope = { [MARK]: 1, value, objects, tokens };
  CLOSED.add(envelope);
  return envelope;
}

/** True for data in the form of a message of `toMessage`. */
function isEnvelope(value: unknown): value is Envelope {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, MARK)) return false;
  const { objects, tokens } = value as Partial<Envelope>;
  return Array.isArray(objects) && Array.isArray(tokens) && tokens.length > 0 && tokens.length === objects.length &&
    objects.every((object) => typeof object === "object" && object !== null);
}

/** The engine's values of tokens, in this realm; undefined if waft did not make all of them in this process. */
function adopt(tokens: readonly Token[]): (ModuleInside | RuntimeMemory)[] | undefined {
  try {
    return tokens.map((token) => {
      if (token?.kind === "memory") return RuntimeMemory.fromShared(token.memory);
      const { module, customs, strings } = token ?? {};
      return { module: EngineModule.fromShared(module, { limits: moduleLimits() }), customs, strings };
    });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Converts a clone to an object of the namespace in this realm. */
function become(object: object, inside: ModuleInside | RuntimeMemory): void {
  if (inside instanceof RuntimeMemory) {
    Object.setPrototypeOf(object, Memory.prototype);
    adoptMemory(object as Memory, inside);
  } else {
    Object.setPrototypeOf(object, Module.prototype);
    MODULES.put(object as Module, inside);
  }
}

/**
 * The posted value of a received message. An envelope that waft did not make is data of the program. Throws an Error
 * for a module that has been released.
 */
export function fromMessage(message: unknown): unknown {
  if (!isEnvelope(message)) return message;
  if (!OPENED.has(message)) {
    const adopted = adopt(message.tokens);
    if (adopted === undefined) return message;
    OPENED.add(message);
    message.objects.forEach((object, k) => become(object, adopted[k]));
  }
  return message.value;
}
