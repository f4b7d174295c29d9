/**
 * Imports of modules that most runs do not need. In: the URL of the importing module and a relative specifier. Out: a
 * function that imports the module.
 *
 * Deno reads every file that a literal import names, in `import()` too, before the program starts; the specifiers here
 * are computed. Packages need literal imports: scripts/package/literal_imports.ts writes them into the sources of a
 * package, and the tests of ranks and exports read these calls like imports.
 */

/** Returns the late imports of the module at `base`, its `import.meta.url`. */
export function lateImports(base: string): <T>(specifier: string) => () => Promise<T> {
  return (specifier) => () => import(new URL(specifier, base).href);
}
