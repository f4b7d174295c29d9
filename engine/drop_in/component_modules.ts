/**
 * Components among imported `.wasm` files. In: the component package's provider, because the engine knows no
 * components. Out: that provider; without one, an error that names the module to install.
 */
import { HEADER } from "../wasm/section_ids.ts";

/** What the component package provides for imports of components. */
export interface ComponentModules {
  /** The URL of the module that installs waft with the provider: Workers load it first. */
  readonly entry: string;
  /** The source of the module for the component in the file at `url`. Throws the errors of decoding and validation. */
  source(url: string, bytes: Uint8Array<ArrayBuffer>): string;
  /** The component that a source phase import gives. Throws compile errors. */
  compile(bytes: Uint8Array<ArrayBuffer>): object;
}

let provided: ComponentModules | undefined;

/** Gives the provider for this realm. */
export function provideComponents(modules: ComponentModules): void {
  provided = modules;
}

/** The provider; undefined if there is none. */
export function providedComponents(): ComponentModules | undefined {
  return provided;
}

/** The provider for the component at `url`. Throws an Error if there is none. */
export function componentModules(url: string): ComponentModules {
  if (provided !== undefined) return provided;
  throw new Error(
    `Cannot import ${url}: it is a component; install waft by @waft/component/install, not by @waft/engine/install`,
  );
}

const MAGIC = HEADER.subarray(0, 4);

/** The layer, the upper half of the version, is 1. */
const COMPONENT_LAYER = Uint8Array.of(1, 0);
const LAYER_OFFSET = 6;

/** Whether the bytes begin like a component in binary form. */
export function isComponent(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, k) => bytes[k] === byte) &&
    COMPONENT_LAYER.every((byte, k) => bytes[LAYER_OFFSET + k] === byte);
}
