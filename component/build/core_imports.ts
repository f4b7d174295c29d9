/**
 * The imports of a core module that is to become a component, by their names, which toolchains agree on: the module is
 * an interface, `$root` for the world itself, or `[export]` and the name of an exported interface; the field is a
 * function or `[word]` and its subject. In: names, and the world. Out: the definition that satisfies the import.
 */
import { InvalidError } from "@waft/engine/internal/errors";
import { parseExternName, versionTrack } from "../model/names.ts";
import { valueOperands } from "../model/types.ts";
import {
  funcId,
  type WitFunc,
  type WitInterface,
  type WitType,
  type WitTypeDef,
  type WitWorld,
} from "../wit/document.ts";
import { funcParts } from "./type_text.ts";

/** The place of an item: the name of an interface's import or export, or undefined for the world itself. */
interface Home {
  readonly side: "imports" | "exports";
  readonly key: string | undefined;
  readonly interface: WitInterface | undefined;
}

/** The definition behind an import of a core module. */
export type Need =
  | { readonly kind: "func"; readonly home: Home; readonly func: WitFunc; readonly async: boolean }
  | { readonly kind: "resource"; readonly home: Home; readonly builtin: ResourceBuiltin; readonly def: WitTypeDef }
  | { readonly kind: "task.return"; readonly home: Home; readonly func: WitFunc }
  | {
    readonly kind: "channel";
    readonly home: Home;
    readonly builtin: string;
    readonly type: Channel;
    readonly async: boolean;
  }
  /** A built-in without types; `usesMemory` if it takes a memory as an option. */
  | { readonly kind: "builtin"; readonly text: string; readonly usesMemory: boolean };

type ResourceBuiltin = "resource.new" | "resource.rep" | "resource.drop";
type Channel = Extract<WitType, { kind: "stream" | "future" }>;

/** Built-ins of `$root` and `[export]$root`, by the word in brackets. */
const PLAIN: Readonly<Record<string, string>> = {
  "backpressure-inc": "backpressure.inc",
  "backpressure-dec": "backpressure.dec",
  "task-cancel": "task.cancel",
  "waitable-set-new": "waitable-set.new",
  "waitable-set-drop": "waitable-set.drop",
  "waitable-join": "waitable.join",
  "subtask-drop": "subtask.drop",
  "error-context-drop": "error-context.drop",
  "thread-index": "thread.index",
  "thread-resume-later": "thread.resume-later",
};

/** Built-ins that may be cancellable. */
const CANCELLABLE: Readonly<Record<string, string>> = {
  "waitable-set-wait": "waitable-set.wait",
  "waitable-set-poll": "waitable-set.poll",
  "thread-suspend": "thread.suspend",
  "thread-yield": "thread.yield",
  "thread-suspend-then-resume": "thread.suspend-then-resume",
  "thread-yield-then-resume": "thread.yield-then-resume",
  "thread-suspend-then-promote": "thread.suspend-then-promote",
  "thread-yield-then-promote": "thread.yield-then-promote",
};

const RESOURCE: Readonly<Record<string, ResourceBuiltin>> = {
  "resource-new": "resource.new",
  "resource-rep": "resource.rep",
  "resource-drop": "resource.drop",
};

const CHANNEL =
  /^\[(stream|future)-(new|read|write|cancel-read|cancel-write|drop-readable|drop-writable)-(unit|\d+)\](.*)$/;

/** The definition that satisfies the import `module` `name`. Throws InvalidError that names the reason. */
export function neededFor(world: WitWorld, module: string, name: string): Need {
  if (module.startsWith("cm32p2")) {
    throw new InvalidError(`the core import \`${module}\`: names that begin with cm32p2 are not supported`);
  }
  const exported = module.startsWith("[export]");
  const home = homeOf(world, exported ? "exports" : "imports", exported ? module.slice("[export]".length) : module);
  if (home === undefined) {
    const hint = module === "wasi_snapshot_preview1" ? "; give an adapter with --adapt" : "";
    throw new InvalidError(
      `the world ${world.name} has no ${exported ? "export" : "import"} for the core import \`${module}\`${hint}`,
    );
  }
  const need = builtinOf(home, world, name) ?? functionOf(home, world, name);
  if (need === undefined) {
    throw new InvalidError(`the world ${world.name} has nothing for the core import \`${module}\` \`${name}\``);
  }
  return need;
}

function homeOf(world: WitWorld, side: Home["side"], name: string): Home | undefined {
  if (name === "$root") return { side, key: undefined, interface: undefined };
  const key = world[side].has(name) ? name : compatibleKey([...world[side].keys()], name);
  const item = key === undefined ? undefined : world[side].get(key);
  return item?.kind === "interface" ? { side, key, interface: item.interface } : undefined;
}

/** The name of the same interface in a compatible version. */
function compatibleKey(keys: readonly string[], name: string): string | undefined {
  const track = trackOf(name);
  return track === undefined ? undefined : keys.find((key) => trackOf(key) === track);
}

/** The interface and the part of its version that compatible versions share; undefined for other names. */
export function trackOf(name: string): string | undefined {
  if (!name.includes(":")) return undefined;
  const parsed = parseExternName(name, 0);
  if (parsed.kind !== "interface" || parsed.version === undefined) return undefined;
  return `${name.slice(0, name.lastIndexOf("@"))}@${versionTrack(parsed.version)}`;
}

function builtinOf(home: Home, world: WitWorld, name: string): Need | undefined {
  const async = name.startsWith("[async-lower]");
  const cancellable = name.startsWith("[cancellable]");
  const rest = name.replace(/^\[(?:async-lower|cancellable)\]/, "");
  const [, word, subject] = /^\[([^\]]*)\](.*)$/.exec(rest) ?? [];
  if (word === undefined) return undefined;
  if (subject === "") return plainBuiltin(word, async, cancellable);
  const builtin = RESOURCE[word];
  if (builtin !== undefined && (home.side === "exports" || builtin === "resource.drop")) {
    const def = typeNamed(home, world, subject);
    return def === undefined ? undefined : { kind: "resource", home, builtin, def };
  }
  if (word === "task-return") {
    const func = funcNamed(home, world, subject);
    return func === undefined ? undefined : { kind: "task.return", home, func };
  }
  const [, kind, action, index, owner] = CHANNEL.exec(rest) ?? [];
  return kind === undefined ? undefined : channelBuiltin(home, world, `${kind}.${action}`, index, owner, async);
}

function plainBuiltin(word: string, async: boolean, cancellable: boolean): Need | undefined {
  const option = cancellable ? " cancellable" : "";
  const text = PLAIN[word];
  if (text !== undefined) return { kind: "builtin", text, usesMemory: false };
  if (word === "subtask-cancel") {
    return { kind: "builtin", text: `subtask.cancel${async ? " async" : ""}`, usesMemory: false };
  }
  const waiting = CANCELLABLE[word];
  if (waiting !== undefined) {
    return { kind: "builtin", text: `${waiting}${option}`, usesMemory: waiting.startsWith("waitable-set.") };
  }
  const [, access, type, slot] = /^context-(get|set)-(?:(i32|i64)-)?([0-9]+)$/.exec(word) ?? [];
  if (access !== undefined) {
    return { kind: "builtin", text: `context.${access} ${type ?? "i32"} ${slot}`, usesMemory: false };
  }
  const [, action, encoding] = /^error-context-(new|debug-message)-(utf8|utf16|latin1\+utf16)$/.exec(word) ?? [];
  if (action === undefined) return undefined;
  return { kind: "builtin", text: `error-context.${action} string-encoding=${encoding}`, usesMemory: true };
}

function channelBuiltin(
  home: Home,
  world: WitWorld,
  builtin: string,
  index: string,
  owner: string,
  async: boolean,
): Need | undefined {
  if (index === "unit") {
    const kind = builtin.startsWith("stream") ? "stream" : "future";
    return { kind: "channel", home, builtin, type: { kind }, async };
  }
  const func = funcNamed(home, world, owner);
  const type = func === undefined ? undefined : channelsOf(func)[Number(index)];
  return type === undefined ? undefined : { kind: "channel", home, builtin, type, async };
}

/** The streams and futures in the signature of a function, those inside others first. */
function channelsOf(func: WitFunc): Channel[] {
  const { params, result } = funcParts(func);
  return [...params.map(({ type }) => type), ...(result === undefined ? [] : [result])].flatMap(channelsIn);
}

function channelsIn(type: WitType): Channel[] {
  if (type.kind === "named") {
    const { type: definition } = type.def;
    if (definition.kind === "resource") return [];
    if (definition.kind === "use") return channelsIn({ kind: "named", def: definition.target });
    return channelsIn(definition.kind === "alias" ? definition.type : definition);
  }
  if (type.kind === "own" || type.kind === "borrow") return [];
  const inner = valueOperands(type).flatMap(channelsIn);
  return type.kind === "stream" || type.kind === "future" ? [...inner, type] : inner;
}

function functionOf(home: Home, world: WitWorld, name: string): Need | undefined {
  if (home.side === "exports") return undefined;
  const async = name.startsWith("[async-lower]");
  const func = funcNamed(home, world, async ? name.slice("[async-lower]".length) : name);
  return func === undefined ? undefined : { kind: "func", home, func, async };
}

function funcNamed(home: Home, world: WitWorld, name: string): WitFunc | undefined {
  if (home.interface !== undefined) return home.interface.funcs.get(name);
  const item = world[home.side].get(name);
  return item?.kind === "func" && funcId(item.func) === name ? item.func : undefined;
}

function typeNamed(home: Home, world: WitWorld, name: string): WitTypeDef | undefined {
  if (home.interface !== undefined) return home.interface.types.get(name);
  const item = world.imports.get(name);
  return item?.kind === "type" ? item.def : undefined;
}
