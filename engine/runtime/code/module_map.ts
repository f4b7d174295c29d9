/**
 * Which module a code address belongs to. In: the images of modules as they come and go. Out: the module whose image holds an address.
 * Invariant: images lie side by side, ascending; modules are held weakly, so that unused ones can go. A program that throws asks for every
 * change of image on its stack, so that looking up is a binary search.
 */
import type { CompiledModule } from "./compiled_module.ts";

export class ModuleMap {
  /** Starts of the images, ascending. */
  readonly #bases: number[] = [];
  readonly #modules: WeakRef<CompiledModule>[] = [];

  add(module: CompiledModule): void {
    const { base } = module.image;
    const at = this.#after(base);
    // One that is gone, but has not been dropped yet, may have had the same image.
    const replaced = at > 0 && this.#bases[at - 1] === base ? 1 : 0;
    this.#bases.splice(at - replaced, replaced, base);
    this.#modules.splice(at - replaced, replaced, new WeakRef(module));
  }

  /** Forgets the module whose image starts at `base`, unless another one has it by now. */
  drop(base: number): void {
    const at = this.#after(base) - 1;
    if (at < 0 || this.#bases[at] !== base || this.#modules[at]!.deref() !== undefined) return;
    this.#bases.splice(at, 1);
    this.#modules.splice(at, 1);
  }

  moduleAt(address: number): CompiledModule | undefined {
    const at = this.#after(address) - 1;
    const module = at < 0 ? undefined : this.#modules[at]!.deref();
    return module?.image.contains(address) ? module : undefined;
  }

  /** Index of the first image that starts beyond `address`. */
  #after(address: number): number {
    let low = 0;
    let high = this.#bases.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#bases[middle]! <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
