/**
 * The first program of a Worker on Deno, which cannot preload a module into a Worker, and of one that evaluates a
 * script on Node. In: the module to load first, and the Worker's own program. Out: the URL or the text of a program
 * that loads both.
 *
 * Invariant: each message reaches the program exactly once and in order. Deno drops a message that arrives before the
 * scope has a listener, so the first program listens before it loads anything, and holds messages back until the
 * Worker's own program listens, or has been evaluated without a listener.
 */

/**
 * Source that declares `release`, which delivers the held messages, and `watch`, after which the first listener for
 * messages causes that in a later task: a program may wait for messages while its top level is evaluated.
 */
const HOLD_MESSAGES = `
const scope = globalThis, held = [], { setTimeout } = scope;
const hold = (event) => { event.stopImmediatePropagation(); held.push(event); };
scope.addEventListener("message", hold);
const release = () => {
  scope.removeEventListener("message", hold);
  for (const { data, ports } of held.splice(0)) {
    scope.dispatchEvent(new MessageEvent("message", { data, ports: [...ports] }));
  }
};
const watch = (target) => {
  for (const name of ["addEventListener", "addListener", "on", "once"]) {
    const add = target[name];
    if (add === undefined) continue;
    target[name] = function (...args) {
      if (args[0] === "message") setTimeout(release);
      return add.apply(this, args);
    };
  }
  const handler = Object.getOwnPropertyDescriptor(target, "onmessage");
  Object.defineProperty(target, "onmessage", {
    ...handler,
    set(value) { setTimeout(release); handler.set.call(this, value); },
  });
};
`;

/** Source that declares `runScript`, which runs `text` like the option `eval` of node:worker_threads: as CommonJS. */
const RUN_SCRIPT = `
const runScript = (text) => {
  const [{ createRequire }, { join }, { constants, runInThisContext }] = ["module", "path", "vm"]
    .map((name) => process.getBuiltinModule("node:" + name));
  const __dirname = process.cwd(), __filename = join(__dirname, "[worker eval]"), module = { exports: {} };
  Object.assign(scope, { require: createRequire(__filename), module, exports: module.exports, __filename, __dirname });
  const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  runInThisContext(text, { filename: __filename, importModuleDynamically });
};
`;

function startUrl(first: string, declarations: string, run: string): string {
  const text = `${declarations}
    await import(${JSON.stringify(first)});
    const { parentPort } = process.getBuiltinModule("node:worker_threads");
    for (const target of parentPort === null ? [scope] : [scope, parentPort]) watch(target);
    ${run};
    release();`;
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

/** The URL of a program that loads the module `first`, then the module `program`; both are URLs. */
export function moduleStart(first: string, program: string): string {
  return startUrl(first, HOLD_MESSAGES, `await import(${JSON.stringify(program)})`);
}

/** The URL of a program that loads the module `first`, then runs the CommonJS script `text`. */
export function scriptStart(first: string, text: string): string {
  return startUrl(first, HOLD_MESSAGES + RUN_SCRIPT, `runScript(${JSON.stringify(text)})`);
}

/**
 * The text of a script for the option eval of Node's Workers that runs the script `text` once the module `first` has
 * been loaded. Node itself runs such a script before it loads a preloaded module, so that the script would get messages
 * with envelopes. Node keeps messages for a Worker until it listens.
 */
export function delayedScript(first: string, text: string): string {
  return `import(${JSON.stringify(first)}).then(() => {
    const { constants, runInThisContext } = require("node:vm");
    const importModuleDynamically = constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
    runInThisContext(${JSON.stringify(text)}, { filename: "[worker eval]", importModuleDynamically });
  });`;
}
