# Runs a component with wasmtime's package for Python: python wasmtime_run.py CONFIGURATION. In: a configuration in JSON:
# file, args, env, directory, and either the interface of `run` or a function and its arguments. Out: the program's
# output and status; of a function its result in JSON.
import ctypes, json, sys
import wasmtime
from wasmtime import _ffi as ffi, component

given = json.loads(sys.argv[1])
engine = wasmtime.Engine()
store = wasmtime.Store(engine)
wasi = wasmtime.WasiConfig()
wasi.argv = ["program", *given["args"]]
wasi.env = given["env"]
wasi.inherit_stdin()
wasi.inherit_stdout()
wasi.inherit_stderr()
# The package has no methods for these two.
ffi.wasi_config_inherit_network(wasi.ptr())
ffi.wasi_config_allow_ip_name_lookup(wasi.ptr(), True)
if given["directory"] is not None:
    wasi.preopen_dir(given["directory"], "/data")
store.set_wasi(wasi)
store.set_wasi_http()
linker = component.Linker(engine)
linker.add_wasip2()
linker.add_wasi_http()
instance = linker.instantiate(store, component.Component.from_file(engine, given["file"]))
if "call" in given:
    call = instance.get_func(store, given["call"])
    print(json.dumps(call(store, *given["arguments"]), ensure_ascii=False))
    sys.exit(0)
holder = instance.get_export_index(store, given["run"])
run = instance.get_func(store, instance.get_export_index(store, "run", holder))
try:
    result = run(store)
except wasmtime.ExitTrap as exit:
    sys.exit(exit.code)
except wasmtime.WasmtimeError as error:
    if "Exited with i32 exit status" not in str(error):
        raise
    sys.exit(int(str(error).split("exit status ")[1].split()[0]))
sys.exit(0 if getattr(result, "tag", "ok") == "ok" else 1)
