/**
 * The playground: a module in text form, and each stage of its compilation. The page's script gives the text to a
 * worker, which compiles it in the browser; nothing is sent to the site.
 */
import type { Call } from "../../services.ts";
import { layout } from "../layout.ts";
import { escapeText, markup, trusted } from "../markup.ts";
import { COMPILER_PATH } from "../playground/build.ts";
import { PLAYGROUND_SCRIPT } from "../static_files.ts";

/** Modules to begin with. */
export const EXAMPLES: readonly { readonly name: string; readonly values: string; readonly text: string }[] = [
  {
    name: "Greatest common divisor",
    values: "1071 462",
    text: `(module
  (func $gcd (export "gcd") (param $a i32) (param $b i32) (result i32)
    (if (result i32) (i32.eqz (local.get $b))
      (then (local.get $a))
      (else (return_call $gcd (local.get $b)
        (i32.rem_u (local.get $a) (local.get $b)))))))`,
  },
  {
    name: "Sum of a memory",
    values: "4",
    text: `(module
  (memory 1)
  (data (i32.const 0) "\\01\\00\\00\\00\\02\\00\\00\\00\\03\\00\\00\\00\\04\\00\\00\\00")
  (func (export "sum") (param $count i32) (result i32)
    (local $at i32) (local $sum i32)
    (loop $next
      (local.set $sum (i32.add (local.get $sum)
        (i32.load (i32.shl (local.get $at) (i32.const 2)))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $count))))
    (local.get $sum)))`,
  },
  {
    name: "Four numbers at once",
    values: "3",
    text: `(module
  (func $scale (param $v v128) (param $by i32) (result v128)
    (i32x4.mul (local.get $v) (i32x4.splat (local.get $by))))
  (func (export "last") (param $by i32) (result i32)
    (i32x4.extract_lane 3
      (call $scale (v128.const i32x4 1 2 3 4) (local.get $by)))))`,
  },
  {
    name: "A call of the host",
    values: "5",
    text: `(module
  (import "console" "log" (func $log (param i32)))
  (func (export "count") (param $to i32)
    (local $n i32)
    (loop $next
      (call $log (local.get $n))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $next (i32.lt_s (local.get $n) (local.get $to))))))`,
  },
];

/** Renders the page. */
export function playgroundPage({ services }: Call): string {
  return layout(services, {
    title: "Playground",
    description: "WebAssembly text, the compiler's intermediate representation and machine code, in your browser.",
    section: "playground",
    canonical: "/playground",
    script: PLAYGROUND_SCRIPT.path,
    body: markup`
    <main id="main" class="playground" data-compiler="${COMPILER_PATH}">
      <h1>Playground</h1>
      <p class="lead">waft's compiler runs in this page: it shows each pass over your module and the machine code for x64
        and 64-bit Arm. Calls run on the engine of your browser. Nothing is sent to this site.</p>
      <noscript><p class="banner">The playground needs JavaScript. On the command line, <code>waft explore FILE</code>
        writes such a page.</p></noscript>
      <div class="panes">
        <section aria-labelledby="module-title">
          <h2 id="module-title">Module</h2>
          <p class="fields"><label>Example <select id="example">${
      EXAMPLES.map(({ name, values, text }) =>
        markup`<option value="${name}" data-values="${values}" data-text="${
          trusted(escapeText(text))
        }">${name}</option>`
      )
    }</select></label></p>
          <label for="module-text">Text</label>
          <textarea id="module-text" rows="14" spellcheck="false" autocapitalize="off" autocomplete="off">${
      trusted(escapeText(EXAMPLES[0].text))
    }</textarea>
          <p id="state" role="status">The compiler is loading …</p>
          <form id="call" class="fields">
            <label>Function <select id="export"></select></label>
            <label>Values <input id="values" value="${EXAMPLES[0].values}" autocomplete="off"></label>
            <button>Run</button>
          </form>
          <pre id="result" role="status" aria-label="Result" tabindex="0"></pre>
        </section>
        <section aria-labelledby="code-title">
          <h2 id="code-title">Compilation</h2>
          <p class="fields">
            <label>Function <select id="function"></select></label>
            <label>Stage <select id="stage"></select></label>
          </p>
          <pre id="code" tabindex="0" role="region" aria-label="Code of the stage"></pre>
        </section>
      </div>
      <p><a href="/exploring">Exploring compilation</a> explains the stages, <a href="/architecture">Architecture</a> the
        compiler.</p>
    </main>`,
  });
}
