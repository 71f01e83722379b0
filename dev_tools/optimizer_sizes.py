"""Programs of fewer elements: what ./dev optimizer equal evaluates where the sizes as they stand are beyond the evaluator.

    p0 = bf16[4096,16384]   reduce-window(...), window={size=1x2047 pad=0_0x1023_1023}
    p0 = bf16[512,2048]     reduce-window(...), window={size=1x255 pad=0_0x127_127}     cut by 8

Every number from `least` on in shapes, windows and slices becomes its part; what is one less than a multiple stays one less
than a multiple. Whether the text is still a program is for the verifier to say."""
import re

# (divisor, least number that is cut): the least change first; small dimensions are cut only where large ones alone do not do.
CUTS = [(8, 1024), (8, 32), (16, 64), (64, 256), (4, 8), (1000, 1000), (1024, 2048), (65536, 65536)]

SHAPE = re.compile(r"\b(?:pred|token|[su](?:1|2|4|8|16|32|64)|f(?:16|32|64)|bf16|f[468]e\w+|c64|c128)\[[^\]]*\]")
ATTRIBUTE = re.compile(r"\b(?:window|slice|slice_sizes|dynamic_slice_sizes|padding)=(?:\{[^}]*\}|[\dx_-]+)")


def part(number, divisor, least):
    if number < least:
        return number
    if number % divisor == 0:
        return number // divisor
    return (number + 1) // divisor - 1 if (number + 1) % divisor == 0 else number


def cut(text, divisor, least):
    def smaller(found):
        return re.sub(r"\d+", lambda n: str(part(int(n.group()), divisor, least)), found.group())

    def shape(found):
        name, bracket, rest = found.group().partition("[")
        return name + bracket + re.sub(r"\d+", lambda n: str(part(int(n.group()), divisor, least)), rest)

    return ATTRIBUTE.sub(smaller, SHAPE.sub(shape, text))


def with_sizes(text):
    """Sizes for those that are not known, f32[?]."""
    return SHAPE.sub(lambda found: found.group().replace("?", "8"), text)


def smaller(text):
    """(how, text) of every cut that changes the text."""
    known = with_sizes(text)
    if known != text:
        yield "unknown sizes are 8", known
    for divisor, least in CUTS:
        changed = cut(known, divisor, least)
        if changed != known:
            yield f"sizes from {least} on divided by {divisor}", changed


def in_f64(text):
    return re.sub(r"\bf32\[", "f64[", text)
