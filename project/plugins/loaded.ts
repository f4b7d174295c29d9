/**
 * Projects and plugins that are loaded and checked: the output of load.ts. Types only.
 *
 * Invariant: the links of a plugin come from its grants and bindings (plugin_grants.ts), and none of its code has run.
 */
import type { Diagnostic } from "../base/diagnostic.ts";
import type { Digest } from "../base/integrity.ts";
import type { InspectedModule } from "../definitions/module_inspector.ts";
import type { Lockfile } from "../lockfile/lock_schema.ts";
import type { Settings } from "../manifest/manifest.ts";
import type { ComponentPart } from "./component_part.ts";
import type { GuestLink, Link } from "./plugin_grants.ts";

/** A plugin that is ready to be instantiated. */
export interface LoadedPlugin {
  readonly id: string;
  readonly version: string;
  readonly bytes: Uint8Array;
  readonly digest: Digest;
  readonly module: InspectedModule;
  readonly links: readonly Link[];
  /** The configuration with defaults, as the RFC 8785 bytes that the plugin reads. */
  readonly config: Uint8Array;
  readonly maxMemoryPages: number;
  /** Present for a component. */
  readonly component?: ComponentPart;
  /** The directory that relative directories of its grants are in, if that is not the project's. */
  readonly root?: string;
  /** Hooks that the engine may call: exports `waft:hooks@1#<name>` of granted authorities. */
  readonly hooks: readonly string[];
}

/** A project that is ready to run a guest. */
export interface LoadedProject {
  /** The directory of its `waft.json`. */
  readonly root: string;
  /** @internal */
  readonly settings: Settings;
  /**
   * In start order.
   *
   * @internal
   */
  readonly plugins: readonly LoadedPlugin[];
  /** @internal */
  readonly guest: readonly GuestLink[];
  /** Groups of WASI that guests may use; absent: all. */
  readonly wasi?: readonly string[];
  /** @internal */
  readonly lockfile?: Lockfile;
  /** Findings for the user that do not prevent a run. */
  readonly warnings: readonly Diagnostic[];
}
