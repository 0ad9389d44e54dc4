# Reads lines as servers in Python would, and prints what it sees in each. Text mode ends a line at
# a carriage return, params may be a list, and a message with a result is a reply, whatever else.
import io, json, sys

def see(m):
    if not isinstance(m, dict) or not isinstance(m.get("method"), str):
        return []
    if m.get("result") is not None or m.get("error") is not None:
        return [["(reply)", None, m.get("id")]]
    p = m.get("params")
    name = p.get("name") if isinstance(p, dict) else p[0] if isinstance(p, list) and p else None
    return [[m["method"], name, m.get("id")]]

for line in sys.stdin.buffer:
    seen = []
    for part in io.TextIOWrapper(io.BytesIO(line), encoding="utf-8", errors="replace"):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        for m in value if isinstance(value, list) else [value]:
            seen += see(m)
    print(json.dumps(seen))
