/**
 * The map from code addresses to modules. In: modules as their images are placed and released. Out: the module whose
 * image contains an address. Invariant: images do not overlap and are sorted by address; modules are held weakly, so
 * that unused ones can be collected. Unwinding looks up every change of image on the stack, hence the binary search.
 */
import type { CompiledModule } from "./compiled_module.ts";

export class ModuleMap {
  /** The start addresses of the images, ascending. */
  readonly #bases: number[] = [];
  readonly #modules: WeakRef<CompiledModule>[] = [];

  add(module: CompiledModule): void {
    const { base } = module.image;
    const at = this.#after(base);
    // A collected module whose finalizer has not run yet may have had the same image.
    const replaced = at > 0 && this.#bases[at - 1] === base ? 1 : 0;
    this.#bases.splice(at - replaced, replaced, base);
    this.#modules.splice(at - replaced, replaced, new WeakRef(module));
  }

  /** Removes the module whose image starts at `base`, unless another module uses that image now. */
  drop(base: number): void {
    const at = this.#after(base) - 1;
    if (at < 0 || this.#bases[at] !== base || this.#modules[at].deref() !== undefined) return;
    this.#bases.splice(at, 1);
    this.#modules.splice(at, 1);
  }

  moduleAt(address: number): CompiledModule | undefined {
    const at = this.#after(address) - 1;
    const module = at < 0 ? undefined : this.#modules[at].deref();
    return module?.image.contains(address) ? module : undefined;
  }

  /** The index of the first image that starts above `address`. */
  #after(address: number): number {
    let low = 0;
    let high = this.#bases.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#bases[middle] <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
