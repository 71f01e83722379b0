"""A file has about 600 lines at most and a function about 60; 1000 and 150 are the end. Exceptions are listed with their reason."""
import re

from . import tracked

FILE_WARN, FILE_FAIL = 600, 1000
FUNCTION_WARN, FUNCTION_FAIL = 60, 150
EXCEPTIONS = "dev_tools/checks/size_exceptions.txt"


def blank_out(text):
    """The text with comments, strings and preprocessor lines replaced by blanks; line numbers stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|'
                         r'^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def functions(text):
    """Yields (name, first line, number of lines) of each function body outside other functions."""
    text = blank_out(text)
    stack, start, line, start_line = [], 0, 1, 1
    for at, c in enumerate(text):
        if c == "\n":
            line += 1
        if c not in "{};":
            if c.isspace() and start == at:
                start, start_line = at + 1, line
            continue
        head = text[start:at]
        if c == "{":
            inside = [kind for kind, *_ in stack]
            if "function" in inside or "value" in inside:
                kind = "block"
            elif re.search(r"\b(namespace|extern\s*$)", head) or re.fullmatch(r"\s*extern\s*", head):
                kind = "scope"
            elif re.search(r"\b(class|struct|union|enum)\b[^()]*$", head):
                kind = "scope"
            elif "(" in head and not re.search(r"\bk[A-Z]\w*\s*(\(|=)", head):  # constexpr OpColumn<F> kTable(... {
                kind = "function"
            else:
                kind = "value"
            name = re.search(r"([\w:~]+|operator\S+)\s*\(", head)
            stack.append((kind, name.group(1) if name else "?", start_line))
        elif c == "}" and stack:
            kind, name, first = stack.pop()
            if kind == "function":
                yield name, first, line - first + 1
        if not (c == ";" and any(kind in ("function", "value") for kind, *_ in stack)):
            start, start_line = at + 1, line


def python_functions(text):
    import ast
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def read_exceptions(root):
    """path or path:function -> highest number of lines"""
    limits = {}
    for line in (root / EXCEPTIONS).read_text().splitlines():
        line = line.split("#")[0].split()
        if line:
            limits[line[0]] = int(line[1])
    return limits


def check(root):
    limits, errors, warnings, used = read_exceptions(root), [], [], set()

    def judge(key, where, lines, warn, fail, what):
        if key in limits:
            used.add(key)
        limit = limits.get(key, fail)
        if lines > limit:
            errors.append(f"{where}: {what} has {lines} lines, the limit is {limit}: split it by op or by stage (or say why not in {EXCEPTIONS})")
        elif lines > warn and key not in limits:
            warnings.append(f"{where}: {what} has {lines} lines (about {warn} is the aim)")

    for path in tracked(root, ".h", ".cc", ".py"):
        text = (root / path).read_text()
        judge(path, path, text.count("\n"), FILE_WARN, FILE_FAIL, "file")
        for name, first, lines in (python_functions if path.endswith(".py") else functions)(text):
            judge(f"{path}:{name}", f"{path}:{first}", lines, FUNCTION_WARN, FUNCTION_FAIL, f"function {name}")
    errors += [f"{EXCEPTIONS}: {key} is not there any more: take the line out" for key in limits
               if key not in used and not (root / key).is_file()]
    return errors, warnings
