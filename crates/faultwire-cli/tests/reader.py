#!/usr/bin/env python3
"""Checks an audit log of version 1, by docs/audit-format.md alone.

    python3 reader.py DIR [KEYLINE]

Prints `ok RECORDS SEGMENTS CHECKPOINTS` (exit 0) or `bad FILE:LINE: why` (exit 1).
Without KEYLINE the key is DIR/audit-log.pub.
"""
import base64
import hashlib
import json
import re
import sys
from pathlib import Path

MAX_LINE = 1_048_576
HEAD = re.compile(
    rb'\{"v":(0|[1-9][0-9]*),"seq":(0|[1-9][0-9]*),'
    rb'"ts":"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)",'
    rb'"log":"([0-9a-f]{32})","prev":"([0-9a-f]{64})",'
    rb'"synced":(0|[1-9][0-9]*),"type":"(?:[^"\\]|\\.)*"[,}]')
NOTE = re.compile(
    rb'(faultwire\.audit/([0-9a-f]{32})\n(0|[1-9][0-9]*)\n([A-Za-z0-9+/=]+)\n)'
    rb'\n\xe2\x80\x94 ([^ +\n]+) ([A-Za-z0-9+/=]+)\n\n')
KEY = re.compile(r'([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)\n?')


class Bad(Exception):
    def __init__(self, file, line, why):
        super().__init__(f"{file}:{line}: {why}")


# --- Ed25519 verification (RFC 8032, 5.1.7), points as (X, Y, Z, T) with x=X/Z, y=Y/Z, xy=T/Z

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def point_add(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def point_mul(n, p):
    result = (0, 1, 1, 0)
    while n:
        if n & 1:
            result = point_add(result, p)
        p = point_add(p, p)
        n >>= 1
    return result


def point_decode(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * SQRT_M1 % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


BASE = point_decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def ed25519_holds(public, message, signature):
    a, r = point_decode(public), point_decode(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = point_mul(s, BASE), point_add(r, point_mul(k, a))
    return ((left[0] * right[2] - right[0] * left[2]) % P == 0
            and (left[1] * right[2] - right[1] * left[2]) % P == 0)


# --- The Merkle tree: a list of (leaves, hash), the largest peak first

def leaf_hash(line):
    return hashlib.sha256(b"\0" + line).digest()


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def add_leaf(peaks, leaf):
    size = 1
    while peaks and peaks[-1][0] == size:
        leaf = node_hash(peaks.pop()[1], leaf)
        size *= 2
    peaks.append((size, leaf))


def tree_root(peaks):
    if not peaks:
        return hashlib.sha256(b"").digest()
    root = peaks[-1][1]
    for _, peak in reversed(peaks[:-1]):
        root = node_hash(peak, root)
    return root


# --- Keys and checkpoints

def unbase64(text, length):
    """The bytes, or None unless `text` is the one right way to write `length` bytes."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return data if len(data) == length and base64.b64encode(data) == text else None


def read_key(text, file="audit-log.pub"):
    parts = KEY.fullmatch(text)
    data = parts and unbase64(parts[3].encode(), 33)
    if not data or data[0] != 1:
        raise Bad(file, 1, "is no public key")
    key_id = hashlib.sha256(parts[1].encode() + b"\n" + data).digest()[:4]
    if key_id.hex() != parts[2]:
        raise Bad(file, 1, "the key's id is not that of its data")
    return parts[1].encode(), key_id, data[1:]


def read_checkpoints(path, key):
    """{size: (root, log, line number)} of all notes; the signatures are checked here."""
    name, key_id, public = key
    file, data = path.name, path.read_bytes() if path.exists() else b""
    checkpoints, at, line, last = {}, 0, 1, -1
    while at < len(data):
        note = NOTE.match(data, at)
        if not note:
            raise Bad(file, line, "no whole checkpoint")
        text, log, size, root, signer, signature = note.groups()
        size, root, signature = int(size), unbase64(root, 32), unbase64(signature, 68)
        if root is None or signature is None:
            raise Bad(file, line, "no base64 of the right length")
        if signer != name or signature[:4] != key_id:
            raise Bad(file, line, "signed by another key")
        if not ed25519_holds(public, text, signature[4:]):
            raise Bad(file, line, "the signature is wrong")
        if size <= last:
            raise Bad(file, line, f"size {size} comes after {last}")
        checkpoints[size] = (root, log, line)
        at, line, last = note.end(), line + 6, size
    return checkpoints


# --- Segments

def segment_files(directory):
    """The segments' file names in order; the live one last."""
    there = {p.name for p in directory.iterdir()}
    full = [f for f in there if re.fullmatch(r"audit-log\.[0-9]{6,}\.jsonl", f)]
    names = [f"audit-log.{n:06}.jsonl" for n in range(1, len(full) + 1)] + ["audit-log.jsonl"]
    for name in names:
        if name not in there:
            raise Bad(name, 0, "a segment is missing")
    return names


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def read_int(text):
    return int(text) if len(text) < 20 else float(text)


def parse_line(raw):
    """Head and JSON of one line with its line end, or ValueError."""
    if len(raw) > MAX_LINE:
        raise ValueError("the line is too long")
    if not raw.endswith(b"\n"):
        raise ValueError("the line was never finished")
    head = HEAD.match(raw)
    if not head:
        raise ValueError("no head of a record")
    if head[1] != b"1":
        raise ValueError("another version of the format")
    try:
        record = json.loads(raw.decode(), parse_constant=refuse_constant, parse_int=read_int)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"no JSON: {e}") from None
    return head, record


def segment_fits(record, number, seq, prev, peaks):
    before, known = None, record.get("before", "")
    if number > 1:
        before = {"records": seq, "last": prev.hex(), "peaks": [h.hex() for _, h in peaks]}
        known = {k: known.get(k) for k in before} if isinstance(known, dict) else known
    # as text, so that 1, 1.0 and true differ
    return json.dumps([record.get("segment"), known]) == json.dumps([number, before])


def check(directory, key_line=None):
    key_line = key_line or (directory / "audit-log.pub").read_text("utf-8", "replace")
    checkpoints = read_checkpoints(directory / "audit-log.checkpoints", read_key(key_line))
    files = segment_files(directory)
    seq, prev, log, peaks = 0, bytes(32), None, []

    def check_root():
        if seq in checkpoints and checkpoints[seq][0] != tree_root(peaks):
            raise Bad("audit-log.checkpoints", checkpoints[seq][2], "another root than the log's")

    for number, file in enumerate(files, 1):
        line = 0
        with open(directory / file, "rb") as f:
            while raw := f.readline(MAX_LINE + 1):
                line += 1
                try:
                    head, record = parse_line(raw)
                except ValueError as e:
                    raise Bad(file, line, e) from None
                log = log or head[4]
                if int(head[2]) != seq:
                    raise Bad(file, line, f"seq is {int(head[2])} and not {seq}")
                if head[5].decode() != prev.hex():
                    raise Bad(file, line, "prev is not the hash of the line before")
                if head[4] != log:
                    raise Bad(file, line, "the line is of another log")
                if int(head[6]) > seq:
                    raise Bad(file, line, "synced is more than seq")
                if (record["type"] == "segment") != (line == 1):
                    raise Bad(file, line, "a segment line is not where it should be")
                if line == 1 and not segment_fits(record, number, seq, prev, peaks):
                    raise Bad(file, line, "the segment line does not fit what came before")
                if line == 1 and number > 1 and seq not in checkpoints:
                    raise Bad(file, line, "no checkpoint over the lines before")
                check_root()
                prev = leaf_hash(raw[:-1])
                add_leaf(peaks, prev)
                seq += 1
        if line == 0:
            raise Bad(file, 1, "a segment without its first line")
    check_root()
    for size, (_, of_log, line) in checkpoints.items():
        if of_log != log:
            raise Bad("audit-log.checkpoints", line, "the checkpoint is of another log")
        if size > seq:
            raise Bad("audit-log.checkpoints", line, f"size {size}, but there are {seq} lines")
    return f"ok {seq} {len(files)} {len(checkpoints)}"


def main(args):
    if len(args) not in (1, 2):
        sys.exit(__doc__)
    try:
        print(check(Path(args[0]), *args[1:]))
    except Bad as e:
        print(f"bad {e}")
        return 1
    except OSError as e:
        print(f"bad {Path(e.filename).name}:0: {e.strerror}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
