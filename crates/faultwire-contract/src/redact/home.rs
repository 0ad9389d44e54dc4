//! Shortens home directories in records, logs and exports to `~`, which does not show the user's
//! name (U2). Envelopes never use this, because agents send paths back.

use std::borrow::Cow;

/// The text with home directories written as `~`: those under `/home`, `/Users` and `C:\Users`, and
/// the one of this process. It may be JSON, which it stays.
///
/// ```
/// use faultwire_contract::shorten_home;
///
/// assert_eq!(shorten_home("open /home/jane/a.md", None), "open ~/a.md");
/// assert_eq!(shorten_home(r#"{"p":"C:\\Users\\jane\\a"}"#, None), r#"{"p":"~\\a"}"#);
/// assert_eq!(shorten_home("/var/lib/app/x", Some("/var/lib/app")), "~/x");
/// assert_eq!(shorten_home("/mnt/home/jane", None), "/mnt/home/jane");
/// ```
#[must_use]
pub fn shorten_home<'t>(text: &'t str, own: Option<&str>) -> Cow<'t, str> {
    let bytes = text.as_bytes();
    let own = own.map(|own| own.trim_end_matches('/').as_bytes()).filter(|own| own.len() > 1);
    let mut short = String::new();
    let mut done = 0;
    for at in memchr::memchr2_iter(b'/', b'\\', bytes) {
        let Some((from, to)) = home_at(text, at, own).filter(|(from, _)| *from >= done) else {
            continue;
        };
        short.push_str(&text[done..from]);
        short.push('~');
        done = to;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    short.push_str(&text[done..]);
    Cow::Owned(short)
}

/// The start and end of the home directory whose first slash is at this position.
fn home_at(text: &str, at: usize, own: Option<&[u8]>) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let rest = &bytes[at..];
    let is_drive = |drive: &&[u8]| matches!(drive, [letter, b':'] if letter.is_ascii_alphabetic());
    let drive =
        at.checked_sub(2).filter(|from| bytes.get(*from..at).as_ref().is_some_and(is_drive));
    let from = drive.filter(|from| begins(text, *from)).unwrap_or(at);
    if from == at && !begins(text, at) {
        return None;
    }
    let is_own = |own: &&[u8]| {
        rest.starts_with(own) && !rest.get(own.len()).is_some_and(|byte| is_name(*byte))
    };
    if let Some(own) = own.filter(is_own) {
        return Some((at, at + own.len()));
    }
    let rest = after_slash(rest)?;
    let rest = [&b"home"[..], b"Users", b"users"].iter().find_map(|dir| rest.strip_prefix(*dir))?;
    let rest = after_slash(rest)?;
    let name = rest.iter().take_while(|byte| is_name(**byte)).count();
    (name > 0).then(|| (from, bytes.len() - rest.len() + name))
}

/// A slash, or a backslash with its escapes in several layers of JSON.
fn after_slash(bytes: &[u8]) -> Option<&[u8]> {
    let backslashes = bytes.iter().take_while(|byte| **byte == b'\\').count();
    let rest = &bytes[backslashes..];
    match rest {
        [b'/', rest @ ..] => Some(rest),
        rest => (backslashes > 0).then_some(rest),
    }
}

/// Whether a path can begin there, which does not go on from something before.
fn begins(text: &str, at: usize) -> bool {
    match &text.as_bytes()[..at] {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        before @ [.., b'/'] => before.ends_with(b"://"),
        [.., b'.' | b'~' | b'-' | b'+' | b'%' | b'_'] => false,
        _ => !text[..at].ends_with(char::is_alphanumeric),
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"._-+@$~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::shorten_home;

    #[track_caller]
    fn check(text: &str, short: &str) {
        assert_eq!(shorten_home(text, Some("/root/")), short);
        assert_eq!(shorten_home(short, Some("/root")), short);
    }

    #[test]
    fn u2_home_directories_are_shortened() {
        check("ENOENT, open '/home/jane/notes/a.md'", "ENOENT, open '~/notes/a.md'");
        check("/Users/jane.doe: not a directory", "~: not a directory");
        check("file:///home/jane/a, /root/b, /rooted/c", "file://~/a, ~/b, /rooted/c");
        check(r#"{"a":"x\n/home/jane/b"}"#, r#"{"a":"x\n~/b"}"#);
        check(r#"{"a":"C:\\Users\\jane\\b","c":1}"#, r#"{"a":"~\\b","c":1}"#);
        check(r"C:\Users\jane\b D:/Users/jane", r"~\b ~");
        check(r#"{"a":"\\/home\\/jane\\/b"}"#, r#"{"a":"~\\/b"}"#);
        check("größe:/home/jöhn/b", "größe:~/b");
        for same in [
            "/mnt/home/jane/x",
            "https://example.com/home/jane",
            "http://home/jane",
            "/home/",
            "/home/[redacted:path]",
            "./home/jane",
            "/homes/jane",
        ] {
            check(same, same);
        }
    }
}
