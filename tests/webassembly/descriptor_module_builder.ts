/**
 * The functions with which the JavaScript tests of custom descriptors make their modules: those of the module builder
 * that the tests of engines share, as far as these tests use it. The builder of the proposal's suite is in another
 * folder of its repository.
 */

/** JavaScript that the tests run after. */
export const MODULE_BUILDER = `
const kWasmI32 = 0x7f, kWasmI8 = 0x78, kWasmExternRef = 0x6f, kWasmFuncRef = 0x70;
const kNoSuperType = undefined, kExternalGlobal = 3;
const kExprLocalGet = 0x20, kExprGlobalGet = 0x23, kExprI32Const = 0x41, kExprEnd = 0x0b, kGCPrefix = 0xfb;
const kExprStructNew = 0, kExprStructGet = 2, kExprStructSet = 5, kExprArrayNewDefault = 7, kExprArraySet = 14;
const kExprStructNewDesc = 32, kExprStructNewDefaultDesc = 33;
const GCInstr = (code) => [kGCPrefix, code];
const leb = (value) => value < 0x80 ? [value] : [value & 0x7f | 0x80, ...leb(value >>> 7)];
const wasmSignedLeb = (value) => value >= -64 && value < 64 ? [value & 0x7f] : [value & 0x7f | 0x80, ...wasmSignedLeb(value >> 7)];
const utf8 = (text) => { const bytes = [...new TextEncoder().encode(text)]; return [...leb(bytes.length), ...bytes]; };
const wasmRefType = (heap) => ({ code: 0x64, heap });
const wasmRefNullType = (heap) => ({ code: 0x63, heap });
const typeBytes = (type) => typeof type === "number" ? [type] : [type.code, ...(type.heap === kWasmExternRef ? [type.heap] : wasmSignedLeb(type.heap))];
const makeField = (type, mutable) => ({ type, mutable });
const makeSig = (params, results) => ({ params, results });
const kSig_i_i = makeSig([kWasmI32], [kWasmI32]), kSig_i_v = makeSig([], [kWasmI32]), kSig_v_i = makeSig([kWasmI32], []);
const fieldBytes = ({ type, mutable }) => [...typeBytes(type), mutable ? 1 : 0];
const vec = (items) => [...leb(items.length), ...items.flat()];

class WasmModuleBuilder {
  types = []; groups = []; group; imports = []; functions = []; globals = []; exports = []; importedGlobals = 0;
  importedFunctions = 0;
  startRecGroup() { this.group = []; }
  endRecGroup() { this.groups.push(this.group); this.group = undefined; }
  nextTypeIndex() { return this.types.length; }
  add(bytes) {
    this.types.push(bytes);
    if (this.group) this.group.push(bytes); else this.groups.push(bytes);
    return this.types.length - 1;
  }
  addType({ params, results }) {
    return this.add([0x60, ...vec(params.map(typeBytes)), ...vec(results.map(typeBytes))]);
  }
  addArray(type, mutable, above, final) {
    return this.add([0x5e, ...fieldBytes(makeField(type, mutable))]);
  }
  addStruct({ fields = [], descriptor, describes }) {
    return this.add([
      ...(describes === undefined ? [] : [0x4c, ...leb(describes)]),
      ...(descriptor === undefined ? [] : [0x4d, ...leb(descriptor)]),
      0x5f, ...vec(fields.map(fieldBytes)),
    ]);
  }
  typeOf(sig) { return typeof sig === "number" ? sig : this.addType(sig); }
  addImport(module, name, sig) {
    this.imports.push([...utf8(module), ...utf8(name), 0, ...leb(this.typeOf(sig))]);
    return this.importedFunctions++;
  }
  addImportedGlobal(module, name, type) {
    this.imports.push([...utf8(module), ...utf8(name), 3, ...typeBytes(type), 0]);
    return this.importedGlobals++;
  }
  addGlobal(type, mutable, init) {
    this.globals.push([...typeBytes(type), mutable ? 1 : 0, ...init, kExprEnd]);
    return { index: this.importedGlobals + this.globals.length - 1 };
  }
  addFunction(name, sig) {
    const builder = this, type = this.typeOf(sig), index = this.importedFunctions + this.functions.length;
    const made = { type, body: [] };
    this.functions.push(made);
    return {
      addBody(body) { made.body = body; return this; },
      exportFunc() { builder.addExport(name, index); return this; },
    };
  }
  addExport(name, index) { this.addExportOfKind(name, 0, index); }
  addExportOfKind(name, kind, index) { this.exports.push([...utf8(name), kind, ...leb(index)]); }
  stringToBytes(text) { return utf8(text); }
  toBuffer() {
    const section = (id, bytes) => [id, ...leb(bytes.length), ...bytes];
    const groups = this.groups.map((group) => Array.isArray(group[0]) ? [0x4e, ...vec(group)] : group);
    return Uint8Array.from([
      0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
      ...section(1, vec(groups)),
      ...section(2, vec(this.imports)),
      ...section(3, vec(this.functions.map(({ type }) => leb(type)))),
      ...section(6, vec(this.globals)),
      ...section(7, vec(this.exports)),
      ...section(10, vec(this.functions.map(({ body }) => {
        const code = [0, ...body, kExprEnd];
        return [...leb(code.length), ...code];
      }))),
    ]);
  }
  toModule(options) { return new WebAssembly.Module(this.toBuffer(), options); }
  instantiate(imports, options) { return new WebAssembly.Instance(this.toModule(options), imports); }
}
`;
