/**
 * The transformations of bundled modules: eager functions, hidden import specifiers, URLs of files.
 */
import assert from "node:assert/strict";
import { compileEagerly } from "./eager_functions.ts";
import { compileFirstEagerly, compileRunsEagerly } from "./quick_profile.ts";
import { QUICK_SAMPLES } from "./quick_samples.ts";
import { loadLate, placeUrls } from "./release_bundle.ts";

const MODULE = `import{sep as s}from"node:path";const a=twice(2);function twice(x){return x*k()}
async function later(){return await t}var t=1;function*many(){yield s}
function k(){return 2}
function nest(x){return inner(x)+[1,2].map((y)=>{if(y>1){function deep(){return y}return deep()}return 0})[1];
function inner(z){return z*2}}
class B{#n=3;n(){return this.#plus(1)}get half(){return this.#n/2}set half(h){this.#n=h*2}"odd name"(){return 9}
async soon(){return await this.#n}*all(){yield this.#n}static make(){return new this()}
#plus(x){return this.#n+x}["c"+1](){return"computed"}}
class C extends B{constructor(){super();this.z=this.n()}n(){return super.n()*10}
m(){return"function no(){}"}f=()=>this.z}
class D{#n;#list=[];constructor(n,other,{by}={by:1}){this.#n=n*by;const add=(x)=>this.#list.push(x+this.#n);for(const x of[1,2])add(x);
if(other!==undefined)other.#n=this.#sum(0)+(()=>this.#times()(other.#n))();const plain={v:7,get(){return this.v}};
this.plain=plain.get();this.text="a constructor is outlined only if its text is longer than this, so that it pays"}
#sum(k,more=this.#n){return k>0?more+this.#sum(k-1):this.#list.length}#times(){return(x)=>x*this.#n}
async #soon(...xs){return xs.length+this.#n}#value(){return this.#n}#maybe(){return this.#n}#counts(){return arguments.length}
#made(){const d=this;return new class{#n=5;#sum(){return this.#n+d.#times()(1)}all(){return this.#sum()}}}
async all(){const d=new D(3,this),value=this.#value;return[this.#n,d.#sum(2),(0,d).#sum(1),await d.#soon(...[1,2],3),
value.call(d),d?.#maybe(),this.#counts(1,2),this.#made().all(),this.plain,d.#list.map((x)=>this.#times()(x))]}}
const o={m(x){return x+this.v},v:1,get g(){return this.v*5},async w(){return 4}};
export{a,twice as b,later,many,nest,B,C,D,k,o};`;

/** The observable behaviour of the module. */
async function behavior(text: string): Promise<unknown> {
  const { a, b, later, many, nest, B, C, D, k, o } = await import(`data:text/javascript,${encodeURIComponent(text)}`);
  const c = new C();
  c.half = 10;
  const soon = await c.soon();
  return [
    [a, b(4), await later(), [...many()], nest(5), k.name, twiceNamed(b)],
    [await new D(2).all(), D.length, Object.getOwnPropertyNames(D.prototype)],
    [c.n(), c.half, c["odd name"](), soon, [...c.all()], B.make().n(), c.c1(), c.z, c.m(), c.f()],
    [
      o.m(2),
      o.g,
      await o.w(),
      Object.keys(c),
      Object.keys(B.prototype),
      Object.getOwnPropertyNames(C.prototype).sort(),
      namesOf(B.prototype),
      namesOf(o),
    ],
  ];
}

/** The names of the functions of an object. */
function namesOf(object: object): string[] {
  return Object.values(Object.getOwnPropertyDescriptors(object))
    .flatMap(({ value, get, set }) => [value, get, set].flatMap((f) => typeof f === "function" ? [f.name] : []))
    .sort();
}

function twiceNamed({ name }: { name: string }): boolean {
  return name === "twice";
}

Deno.test("compileEagerly() preserves the behaviour of a module, for every choice of functions", async () => {
  const expected = await behavior(MODULE);
  assert.deepEqual((expected as unknown[][])[0], [4, 8, 1, ["/"], 12, "k", true]);
  const all = compileEagerly(MODULE, () => true);
  assert.deepEqual((expected as unknown[][])[1], [[8, 8, 5, 6, 3, 3, 2, 13, 7, [32, 40]], 2, ["constructor", "all"]]);
  assert.match(all, /\nvar twice=\(function twice\(x\)/);
  assert.match(all, /static\{\$outlined_plus0=\(function\(\$outlined_this,x\)/);
  assert.match(all, /constructor\(\$outlined_0,\$outlined_1,\$outlined_2=void 0\)\{\$outlined_constructor\d\(this,/);
  assert.match(all, /#value=\(function\(\)/, "a private method that is used as a value cannot be outlined");
  assert.match(all, /constructor\(\)\{super/);
  assert.match(all, /n\(\)\{return super/, "a method that uses super stays a method");
  assert.deepEqual(await behavior(all), expected);
  // Each function alone.
  const starts = new Set<string>();
  compileEagerly(MODULE, (start, end) => !starts.add(`${start} ${end}`));
  for (const chosen of starts) {
    const some = compileEagerly(MODULE, (start, end) => chosen === `${start} ${end}`);
    assert.deepEqual(await behavior(some), expected, some);
  }
  assert.equal(starts.size, 37);
  assert.equal(compileEagerly(MODULE, () => false), MODULE);
  const shared = compileEagerly(MODULE, () => true, "public");
  assert.match(shared, /#value\(\)\{return/, "a private method that cannot be outlined stays a method");
  assert.deepEqual(await behavior(shared), expected);
  const examined = compileEagerly(MODULE, () => true, "none");
  assert.match(
    examined,
    /[{;]n\(\)\{return \$outlined_plus0\(this,1\)\}get half\(\)[^]*\{m\(x\)/,
    "methods stay methods",
  );
  assert.match(examined, /\nvar twice=/);
  assert.deepEqual(await behavior(examined), expected);
});

Deno.test("functions of a package that run before its first result are compiled eagerly, others are not", () => {
  const engine = `export function NewEngine() { return { compile: (bytes) => new Compiled(bytes) }; }
    function unused() { return 1; }
    export class Compiled { constructor(bytes) { this.bytes = bytes; } instantiate() { return { exports: exported() }; } }
    function exported() { return { run: identity, memory: { buffer: new ArrayBuffer(1) } }; }
    function identity(value) { return value; }`;
  const namespace = `import { Compiled } from "../mod.js";
    class Instance { constructor(module) { this.exports = module.instantiate().exports; } }
    const instance = new Instance(new Compiled());
    export const WebAssembly = { Module: Compiled, Instance, validate: () => true,
      compile: () => Promise.resolve(new Compiled()), instantiate: () => Promise.resolve({ instance }) };`;
  const files = new Map(
    Object.entries({ "mod.js": engine, "webassembly/mod.js": namespace }).map(([path, text]) => [
      path,
      new TextEncoder().encode(text),
    ]),
  );
  compileFirstEagerly(files);
  const text = new TextDecoder().decode(files.get("mod.js"));
  assert.match(text, /exported=\(function exported/);
  assert.match(text, /identity=\(function identity/);
  assert.match(text, /\n {4}function unused\(\)/);
  files.set("mod.js", new TextEncoder().encode(engine.replace("return value", "return value + 1")));
  assert.throws(() => compileFirstEagerly(files), /wrong result/);
});

Deno.test("the functions of a bundle that run do not depend on time", () => {
  const outputs = Object.fromEntries(QUICK_SAMPLES.map(({ name, output }) => [name, output]));
  const entry = `const outputs = ${JSON.stringify(outputs)};
    const started = performance.now();
    for (const end = Date.now() + 10; Date.now() < end;);
    function always() { return Deno.args.find((word) => word.endsWith(".wasm")).replace(/^.*[/]|.wasm$/g, ""); }
    function later() { return ""; }
    const late = performance.now() - started > 5 ? later() : "";
    Deno.stdout.writeSync(new TextEncoder().encode(outputs[always()] + late));`;
  const files = new Map([["lib/waft.js", new TextEncoder().encode(entry)]]);
  compileRunsEagerly(files, "lib/waft.js", ["lib/quick_run.js"]);
  const text = new TextDecoder().decode(files.get("lib/waft.js"));
  assert.match(text, /always=\(function always/);
  assert.match(text, /\n {4}function later\(\)/);
});

Deno.test("loadLate() hides the specifiers of the bundle's own modules and leaves other imports unchanged", () => {
  const module =
    `await import("./cli-X2.js"); import('./b.js'); import("node:fs"); import { a } from "./chunk.js"; import("./" + a);`;
  const expected =
    `await import(String("./cli-X2.js")); import(String('./b.js')); import("node:fs"); import { a } from "./chunk.js"; import("./" + a);`;
  assert.equal(loadLate(module), expected);
});

Deno.test("placeUrls() rewrites URLs of files, in minified modules too, and refuses unknown URLs", () => {
  assert.equal(
    placeUrls("new URL(`./worker.${x$2}`,import.meta.url)", "m.js"),
    'new URL("./compile_worker.js", import.meta.url)',
  );
  assert.equal(placeUrls('new URL("../docs/",import.meta.url)', "m.js"), 'new URL("./docs/", import.meta.url)');
  assert.equal(
    placeUrls("new URL(`./worker.${s}`,import.meta.url)", "m.js"),
    'new URL("./compile_worker.js", import.meta.url)',
  );
  assert.throws(() => placeUrls('new URL("../x", import.meta.url)', "m.js"), /m\.js has .*no place in a bundle/);
});
