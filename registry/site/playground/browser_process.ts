/**
 * The process of a browser's worker, for modules of the engine that read the system when they are evaluated: none of
 * the systems on which machine code runs. Imported before them.
 */
const scope = globalThis as { process?: object };
scope.process ??= { platform: "browser", arch: "browser", versions: {}, features: {}, env: {}, execPath: "" };
