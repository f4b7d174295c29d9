"""The world `drafts` in Python: what a guest sees of its configuration and of its store."""

from componentize_py_types import Err
from wit_world.imports import wasi_config_store as config
from wit_world.imports import wasi_keyvalue_store as keyvalue
import wit_world


def opened(identifier: str) -> str:
    try:
        keyvalue.open(identifier)
        return "opened"
    except Err as error:
        return type(error.value).__name__.removeprefix("Error_")


class WitWorld(wit_world.WitWorld):
    def report(self) -> str:
        pairs = ", ".join(f"{name}: {value}" for name, value in sorted(config.get_all()))
        parts = [f"{config.get('name')}, {config.get('absent')}, {pairs}"]
        bucket = keyvalue.open("")
        bucket.set("b", "zwölf".encode())
        bucket.set("a", bytes(range(4)))
        keys = " ".join(sorted(bucket.list_keys(None).keys))
        parts.append(f"{keys}, {bucket.get('b').decode()}, {list(bucket.get('a'))}")
        bucket.delete("a")
        bucket.delete("never")
        parts.append(f"{bucket.exists('a')}, {bucket.exists('b')}, {bucket.get('a')}")
        parts.append(opened("another"))
        return "; ".join(parts)
