/**
 * The code for operating systems other than Linux. In: the system of this process. Out: its parts; undefined on Linux,
 * whose code the users of this module have. Invariant: a system loads no other system's code.
 */
import { LateModule, SUFFIX } from "../late_module.ts";
import type { SystemParts } from "./parts.ts";
import { ownDeno as own } from "../globals.ts";

type PartsModule = LateModule<{ readonly PARTS: SystemParts }>;

const DARWIN: PartsModule = new LateModule(
  new URL(`./darwin_parts.${SUFFIX}`, import.meta.url),
  () => import("./darwin_parts.ts"),
);
const WINDOWS: PartsModule = new LateModule(
  new URL(`./windows_parts.${SUFFIX}`, import.meta.url),
  () => import("./windows_parts.ts"),
);

/** The systems other than Linux, under the names of Deno and of Node. */
const OTHERS: Readonly<Record<string, PartsModule>> = { darwin: DARWIN, windows: WINDOWS, win32: WINDOWS };

function runtimeSystem(): string {
  return own === undefined ? process.platform : own.build.os;
}

await OTHERS[runtimeSystem()]?.load();

/** The parts of this system; undefined on Linux. */
export function systemParts(): SystemParts | undefined {
  return OTHERS[runtimeSystem()]?.get().PARTS;
}
