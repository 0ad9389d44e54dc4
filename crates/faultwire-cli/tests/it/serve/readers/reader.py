# Reads lines as servers in Python would, and prints what it sees in each. Text mode ends a line at
# a carriage return, params may be a list, and a message with a result is a reply, whatever else.
# Of two members of one name it takes the last, or, if the argument is "first", the first; "c" also
# ends a name at NUL, as libraries in C do.
import io, json, sys

WINS = sys.argv[1]

def members(pairs):
    read = {}
    for name, value in pairs:
        if WINS == "c":
            name = name.split("\0")[0]
        if WINS == "last" or name not in read:
            read[name] = value
    return read

def see(m):
    if not isinstance(m, dict) or not isinstance(m.get("method"), str):
        return []
    if m.get("result") is not None or m.get("error") is not None:
        return [["(reply)", None, m.get("id"), None]]
    p = m.get("params")
    if isinstance(p, list):
        return [[m["method"], p[0] if p else None, m.get("id"), p[1] if len(p) > 1 else None]]
    p = p if isinstance(p, dict) else {}
    return [[m["method"], p.get("name"), m.get("id"), p.get("arguments")]]

for line in sys.stdin.buffer:
    seen = []
    for part in io.TextIOWrapper(io.BytesIO(line), encoding="utf-8", errors="replace"):
        try:
            value = json.loads(part, object_pairs_hook=members)
        except (ValueError, RecursionError):
            continue
        for m in value if isinstance(value, list) else [value]:
            seen += see(m)
    print(json.dumps(seen))
