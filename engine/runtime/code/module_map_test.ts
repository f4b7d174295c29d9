/**
 * Lookup of modules by code address.
 */
import { strictEqual } from "node:assert";
import { test } from "node:test";
import type { CompiledModule } from "./compiled_module.ts";
import { ModuleMap } from "./module_map.ts";

function imageAt(base: number, size: number): CompiledModule {
  const contains = (address: number) => address >= base && address < base + size;
  return { image: { base, size, contains } } as unknown as CompiledModule;
}

test("an address is found in the image that contains it, in any order of insertion", () => {
  const map = new ModuleMap();
  const modules = new Map([5, 1, 9, 3, 7].map((k) => [k, imageAt(k * 4096, 100 + k)]));
  for (const module of modules.values()) map.add(module);
  for (const [k, module] of modules) {
    strictEqual(map.moduleAt(k * 4096), module);
    strictEqual(map.moduleAt(k * 4096 + 99 + k), module);
    strictEqual(map.moduleAt(k * 4096 + 100 + k), undefined);
    strictEqual(map.moduleAt(k * 4096 - 1), undefined);
  }
});

test("a module that reuses an image is not dropped with its predecessor", () => {
  const map = new ModuleMap();
  const [first, second] = [imageAt(4096, 64), imageAt(4096, 64)];
  map.add(first);
  map.add(second);
  map.drop(4096); // as the first module's finalizer does
  strictEqual(map.moduleAt(4096), second);
});
