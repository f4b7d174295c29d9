/**
 * Data that synchronous code loads on first use. In: the place of a JSON file, and a module with the same data for
 * programs that have no such file, in a bundle, from the network or in one executable. Out: the data.
 *
 * A package has both. The file is read first: requiring a module takes Deno longer, by its Node compatibility layer
 * alone as long as importing the engine.
 */
import { readFile } from "./files.ts";

/** Data that is loaded on first use. */
export class LateData<T> {
  readonly #file: URL;
  readonly #module: () => T;
  #data: { readonly value: T } | undefined;

  /** `module` loads the module, and returns its data. */
  constructor(file: URL, module: () => T) {
    this.#file = file;
    this.#module = module;
  }

  /** The data. Throws an Error if there is neither the file nor the module. */
  get(): T {
    return (this.#data ??= { value: this.#read() ?? this.#module() }).value;
  }

  #read(): T | undefined {
    try {
      return JSON.parse(new TextDecoder().decode(readFile(this.#file))) as T;
    } catch {
      return undefined;
    }
  }
}
