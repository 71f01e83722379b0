"""Programs of fewer elements: what ./dev optimizer equal evaluates where the sizes as they stand are beyond the evaluator.

    p0 = bf16[4096,16384]   reduce-window(...), window={size=1x2047 pad=0_0x1023_1023}
    p0 = bf16[512,2048]     reduce-window(...), window={size=1x255 pad=0_0x127_127}     cut by 8

Every number from `least` on in shapes, windows and slices becomes its part; what is one less than a multiple, or one more, stays
so. Of constants that are lists as many elements stay as the shape then has. Whether the text is still a program
is for the verifier to say."""
import re

# (divisor, least number that is cut): the least change first; small dimensions are cut only where large ones alone do not do.
CUTS = [(8, 1024), (8, 32), (16, 64), (64, 256), (4, 8), (64, 64), (32, 32), (1000, 1000), (1024, 2048), (65536, 65536)]

SHAPE = re.compile(r"\b(?:pred|token|[su](?:1|2|4|8|16|32|64)|f(?:16|32|64)|bf16|f[468]e\w+|c64|c128)\[[^\]]*\]")
ATTRIBUTE = re.compile(r"\b(?:window|slice|slice_sizes|dynamic_slice_sizes|padding|(?:feature|batch)_group_count)=(?:\{[^}]*\}|[\dx_-]+)")
# Sizes that are no multiples and as large as this are of memory that a call wants for itself.
SCRATCH = 1 << 20

COUNT = re.compile(r"\b[su](?:32|64)\[\](?:\{\})? constant\((\d+)\)")
LIST = re.compile(r"= ([a-z]+\d*)\[(\d+)\](\S*) constant\(\{([^{}]*)\}\)")


def part(number, divisor, least):
    if number < least:
        return number
    if number % divisor == 0:
        return number // divisor
    for one in (1, -1):
        if (number + one) % divisor == 0:
            return (number + one) // divisor - one
    return number // divisor if number >= SCRATCH else number


def with_each_size(text, change):
    def shape(found):
        name, bracket, rest = found.group().partition("[")
        return name + bracket + re.sub(r"\d+", lambda n: str(change(int(n.group()))), rest)

    return SHAPE.sub(shape, text)


def cut(text, divisor, least):
    def smaller(found):
        return re.sub(r"\d+", lambda n: str(part(int(n.group()), divisor, least)), found.group())

    def first(found):
        kind, size, layout, values = found.groups()
        return f"= {kind}[{size}]{layout} constant({{{','.join(values.split(',')[:int(size)])}}})"

    return LIST.sub(first, ATTRIBUTE.sub(smaller, with_each_size(text, lambda n: part(n, divisor, least))))


def with_sizes(text):
    """Sizes for those that are not known, f32[?]."""
    return SHAPE.sub(lambda found: found.group().replace("?", "8"), text)


def fewer_trips(text):
    """Two trips for loops that count to a constant, and two elements where arrays have one for each trip."""
    conditions = set(re.findall(r"\bcondition=%?([\w.-]+)", text))
    ends = set()
    for name, body in re.findall(r"^%?([\w.-]+) [^\n]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        if name in conditions:
            ends |= {int(n) for n in COUNT.findall(body) if int(n) > 2}

    def two(found):
        return re.sub(r"\d+", lambda n: str({end: 2, end - 1: 1}.get(int(n.group()), n.group())), found.group())

    for end in ends:
        text = ATTRIBUTE.sub(two, COUNT.sub(two, with_each_size(text, lambda n: 2 if n == end else n)))
    return text


def smaller(text):
    """(how, text) of every cut that changes the text."""
    known = with_sizes(text)
    if known != text:
        yield "unknown sizes are 8", known
    for trips, whole in (("", known), ("two trips, ", fewer_trips(known))):
        if trips and whole == known:
            return
        for divisor, least in CUTS:
            changed = cut(whole, divisor, least)
            if changed != whole:
                yield f"{trips}sizes from {least} on divided by {divisor}", changed


def in_f64(text):
    return re.sub(r"\b(?:f32|bf16|f16|f8e\w+)\[", "f64[", text)
