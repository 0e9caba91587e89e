"""The house: who may import whom, a pure domain, documented names, one tree of errors, short modules."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import octavo
from octavo import errors
from octavo.domain import buffer

SOURCE = Path(octavo.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# Stairs go down only: a floor may use itself and the floors named here.
FLOORS = {
    "words": set(),
    "domain": {"errors", "words"},
    "storage": {"errors", "libraries", "domain"},
    "models": {"errors", "libraries", "domain"},
    "engine": {"errors", "libraries", "domain", "storage", "models"},
    "documents": {"errors", "domain", "storage", "models", "engine"},
    "doors": {"errors", "domain", "storage", "models", "engine", "documents", "robotgrid"},
    "robotgrid": {"errors", "domain", "documents"},
    "testing": {"errors", "domain", "storage", "models", "engine"},
}

# The domain knows no clock, disk, network, randomness, environment or logging.
IMPURE = {
    *("asyncio", "ctypes", "fcntl", "getpass", "http", "io", "locale", "logging", "mmap", "multiprocessing"),
    *(
        "os",
        "pathlib",
        "platform",
        "random",
        "secrets",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
    ),
    *("sys", "tempfile", "threading", "time", "urllib", "uuid", "warnings"),
}
# What the domain may use of others: records that decode themselves, and the stemmer.
RECORDS = {"msgspec"}
STEMMER = {"domain/text.py": {"Stemmer"}, "domain/likeness.py": {"rapidfuzz"}}

# How many records (structs, named tuples) there are: it may shrink, and a new one asks whether it is an idea.
RECORD_TYPES = 153


TREES = {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in MODULES}
LENGTHS = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES}


def imported(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            yield from (name.name for name in part.names)
        elif isinstance(part, ast.ImportFrom):
            assert part.level == 0, "imports are written out in full"
            yield part.module or ""
            if part.module == "octavo":
                yield from (f"octavo.{name.name}" for name in part.names)


def floor_of(name: str) -> str:
    return name.partition("/")[0].removesuffix(".py")


def of_floor(floor: str) -> dict[str, ast.Module]:
    return {name: tree for name, tree in TREES.items() if floor_of(name) == floor}


@pytest.mark.parametrize("floor", FLOORS)
def test_stairs_go_down_only(floor):
    assert of_floor(floor)
    for name, tree in of_floor(floor).items():
        own = {module.split(".")[1] for module in imported(tree) if module.startswith("octavo.")}
        assert own <= FLOORS[floor] | {floor}, name


def test_the_domain_imports_nothing_but_pure_parts_of_the_standard_library_and_the_stemmer():
    for name, tree in of_floor("domain").items():
        tops = {module.partition(".")[0] for module in imported(tree)} - {"octavo", ""}
        # Types are taken apart under a lock, wherever they are read.
        assert not tops & IMPURE - ({"threading"} if name == "domain/records.py" else set()), name
        assert tops - set(sys.stdlib_module_names) <= RECORDS | STEMMER.get(name, set()), name


def test_the_domain_asks_no_clock_and_touches_no_file():
    for name, tree in of_floor("domain").items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                asked = (node.value.id, node.attr)
                assert asked[0] not in ("datetime", "date") or asked[1] not in ("now", "utcnow", "today"), (
                    name
                )
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("open", "print", "input", "eval", "exec", "__import__"), name


def test_our_own_package_is_never_imported_inside_a_function():
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = [m for m in imported(node) if m.partition(".")[0] == "octavo"]
                assert not inside, f"{name}: {node.name}"


def own_names(tree: ast.Module) -> set[str]:
    """Every function, class, attribute and field that a module defines."""
    found = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    found |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    fields = [n.target for n in ast.walk(tree) if isinstance(n, ast.AnnAssign)]
    return found | {target.id for target in fields if isinstance(target, ast.Name)}


def foreign_privates(tree: ast.Module) -> Iterator[str]:
    """Private names of others that a module touches: attributes beyond `self`, and imports."""
    own = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr):
            is_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_self and node.attr not in own:
                yield f"{ast.unparse(node)}, line {node.lineno}"
        elif isinstance(node, ast.ImportFrom):
            yield from (f"import {n.name}, line {node.lineno}" for n in node.names if n.name.startswith("_"))


def test_a_private_name_is_touched_in_its_own_module_alone():
    for name, tree in TREES.items():
        assert list(foreign_privates(tree)) == [], name
    guilty = ast.parse("from a import _b\naccount._spine\naccount._writer(1)\nself._own\n")
    assert len(list(foreign_privates(guilty))) == 3


def test_no_class_of_the_doors_inherits_from_the_engine():
    for name, tree in of_floor("doors").items():
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        below = [n for n in imports if (n.module or "").startswith("octavo.engine")]
        engine = {alias.asname or alias.name for node in below for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base).partition(".")[0] for base in node.bases}
                assert not bases & engine, f"{name}: {node.name}"


def undocumented(body: list[ast.stmt], inside: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        # A test's name is its sentence; everything else that is public has one of its own.
        is_public = not node.name.startswith(("_", "test_"))
        if is_public and not ast.get_docstring(node):
            yield f"{inside}.{node.name}"
        if isinstance(node, ast.ClassDef) and is_public:
            yield from undocumented(node.body, f"{inside}.{node.name}")


def test_every_module_class_and_public_function_says_what_it_is():
    silent = [name for name, tree in TREES.items() if not ast.get_docstring(tree)]
    silent += [what for name, tree in TREES.items() for what in undocumented(tree.body, name)]
    assert silent == []


def test_nothing_below_the_doors_catches_everything_or_swallows():
    for name, tree in TREES.items():
        if floor_of(name) in ("doors", "documents"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else "BaseException"
                assert not re.search(r"\bException\b", caught), f"{name}, line {node.lineno}"
                again = any(isinstance(part, ast.Raise) for part in ast.walk(node))
                assert "BaseException" not in caught or again, f"{name}, line {node.lineno}"


def read_as(tree: ast.Module) -> Iterator[ast.expr]:
    """The types that a module has msgspec read, other than by a decoder made when it was imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("msgspec."):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in ("decode", "convert"):
                yield from (keyword.value for keyword in node.keywords if keyword.arg == "type")
                yield from node.args[1:2]


def test_a_record_is_first_read_by_one_thread():
    for name, tree in TREES.items():
        for kind in read_as(tree):
            told = ast.unparse(kind)
            names = {node.id for node in ast.walk(kind) if isinstance(node, ast.Name)}
            assert told.startswith("shape_of(") or names <= {"dict", "list", "str", "int", "Any"}, (
                name,
                told,
            )
    assert [
        ast.unparse(k) for k in read_as(ast.parse("msgspec.convert(a, B)\nmsgspec.json.decode(c, type=D)"))
    ]


def test_no_module_has_more_than_400_lines():
    assert {name: lines for name, lines in LENGTHS.items() if lines > 400} == {}


def records_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        bases = {ast.unparse(base).split(".")[-1] for base in getattr(node, "bases", ())}
        if isinstance(node, ast.ClassDef) and bases & {"Struct", "NamedTuple", "Record"}:
            yield node.name


def test_there_are_not_more_records_than_there_were():
    count = sum(len(list(records_of(tree))) for tree in TREES.values())
    assert count <= RECORD_TYPES
    assert list(
        records_of(ast.parse("class A(msgspec.Struct): ...\nclass B(NamedTuple): ...\nclass C: ..."))
    ) == [
        "A",
        "B",
    ]


def calls_in(tree: ast.Module) -> Iterator[tuple[str, list[object]]]:
    """What a module calls, each with the constants it hands in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), [a.value for a in node.args if isinstance(a, ast.Constant)]


def test_a_version_comes_to_be_in_one_place():
    for name, tree in TREES.items():
        if name not in ("engine/spine.py", "testing/stores.py"):  # the spine, and the ledger's own suite
            calls = {called for called, _ in calls_in(tree)}
            assert not {call for call in calls if call.endswith("ledger.commit")}, name


# What is opened only to be locked, SQLite's own file, standard output that has gone.
NO_DISK = {
    "storage/columns.py", "storage/cache.py", "storage/state_file.py", "doors/cli.py",
}  # fmt: skip


def written(tree: ast.Module) -> Iterator[str]:
    """The calls of a module that write files by themselves."""
    for called, constants in calls_in(tree):
        is_open = called.endswith("open") and any(re.fullmatch("[wax]b?|r.?[+]b?", str(c)) for c in constants)
        is_os = called in ("os.open", "os.write", "os.replace", "os.rename")
        if (
            is_open
            or is_os
            or (called.endswith((".write_bytes", ".write_text")) and not called.startswith("trees."))
        ):
            yield called


def test_files_are_written_by_the_disk_alone():
    for name, tree in TREES.items():
        if name != "storage/stores/disk.py" and floor_of(name) != "testing":
            assert not list(written(tree)) or name in NO_DISK, name
    guilty = ast.parse('p.open("wb")\nos.open(p)\np.write_text(x)\np.open("rb")\np.open("r+b")')
    assert len(list(written(guilty))) == 4


def test_no_module_is_named_after_nothing():
    vague = {"utils", "util", "helpers", "common", "manager", "base", "misc"}
    assert not vague & {Path(name).stem for name in TREES}


def error_classes() -> dict[str, type[errors.OctavoError]]:
    found = inspect.getmembers(errors, lambda c: inspect.isclass(c) and issubclass(c, errors.OctavoError))
    return dict(found)


def drawing() -> dict[str, tuple[int, int, str]]:
    """Every line of the drawn tree: the error, its exit code, its status, and whom it hangs on."""
    found: dict[str, tuple[int, int, str]] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"([│├└─ ]*)([A-Z]\w+)\s+(\d+)\s+(\d+)", line)
        if match:
            depth = len(match[1]) // 4
            above[depth:] = [match[2]]
            found[match[2]] = (int(match[3]), int(match[4]), above[depth - 1] if depth else "Exception")
    return found


def test_every_error_stands_in_the_drawing_with_its_code_and_status():
    told = {
        name: (cls.exit_code, cls.http_status, cls.__bases__[0].__name__)
        for name, cls in error_classes().items()
    }
    assert drawing() == told


@pytest.mark.parametrize("cls", error_classes().values())
def test_every_error_says_what_to_do(cls):
    error = cls("writing x failed")
    assert error.hint
    assert str(error) == f"writing x failed ({error.hint})"
    assert str(cls("writing x failed", hint="do y")) == "writing x failed (do y)"
    assert issubclass(errors.BadInput, ValueError)


def test_the_public_names_are_there_sorted_and_documented():
    assert list(octavo.__all__) == sorted(octavo.__all__, key=lambda n: (not n.isupper(), n[0].islower(), n))
    assert {"open", "accounts", "delete_account", "Account", "Sandbox", "Memory", "OctavoError"} <= set(
        octavo.__all__
    )
    for name in octavo.__all__:
        value = getattr(octavo, name)
        assert not callable(value) or inspect.getdoc(value), name


def test_no_file_of_ours_speaks_of_the_machine_it_was_written_on():
    for path in (*MODULES, *sorted(Path(__file__).parent.glob("*.py"))):
        if path.name != Path(__file__).name:
            assert not re.search(r"/(work|tmp|home|root)/", path.read_text()), path.name


def imports_of(name: str, tree: ast.Module, modules: set[str]) -> set[str]:
    """The modules of ours that a module imports, at its top, inside functions or by a string."""
    own = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            own |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            own |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            own |= {node.value} - {name}
    package = {part for part in own if part in modules and f"{part}.__init__" not in modules}
    deeper = {part for part in package if any(other.startswith(f"{part}.") for other in own & modules)}
    return package - deeper - {name, "octavo"}


def module_of(path: str) -> str:
    return "octavo." + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """What remains when everything that imports nothing left is taken away, again and again, from below."""
    left = {name: set(names) & set(graph) for name, names in graph.items()}
    while free := {name for name, names in left.items() if not names}:
        left = {name: names - free for name, names in left.items() if name not in free}
    while idle := {name for name in left if not any(name in names for names in left.values())}:
        left = {name: names for name, names in left.items() if name not in idle}
    return sorted(left)


def test_no_module_imports_one_that_imports_it():
    modules = {module_of(path) for path in TREES}
    assert cycles({module_of(p): imports_of(module_of(p), t, modules) for p, t in TREES.items()}) == []
    hidden = ast.parse("def f():\n    load('octavo.b')")
    assert cycles({"octavo.a": imports_of("octavo.a", hidden, {"octavo.b"}), "octavo.b": {"octavo.a"}})


def test_nothing_of_ours_is_imported_for_types_alone_or_by_a_string():
    for name, tree in TREES.items():
        if name != "libraries.py":
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert "TYPE_CHECKING" not in names, name


def octavo_types(hint: object, seen: set[type]) -> Iterator[type]:
    """Every class of ours that an annotation names, and those of its fields."""
    for inner in typing.get_args(hint):
        yield from octavo_types(inner, seen)
    if isinstance(hint, type) and hint.__module__.startswith("octavo") and hint not in seen:
        seen.add(hint)
        yield hint
        if issubclass(hint, msgspec.Struct):
            for field in typing.get_type_hints(hint).values():
                yield from octavo_types(field, seen)


def test_what_results_are_made_of_can_be_imported_from_the_package():
    results: set[type] = set()
    of_buffers = set(buffer.TAGS)  # the lines of a sandbox, which `octavo.domain.buffer` names
    for cls in (octavo.Account, octavo.Sandbox, octavo.Snapshot):
        for name, method in inspect.getmembers(cls, inspect.isfunction):
            if not name.startswith("_"):
                hints = typing.get_type_hints(inspect.unwrap(method))
                results |= set(octavo_types(hints["return"], set(of_buffers)))
    assert {cls.__name__ for cls in results} - set(octavo.__all__) == set()
    assert len(results) > 30
