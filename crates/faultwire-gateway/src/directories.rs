//! The directories that a server may use, as far as the gateway knows them without its words: those
//! that its command names, and the roots that the client told it.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::launch::Launch;

/// More are not kept.
const MOST: usize = 16;
/// So many texts of the arguments are looked at.
const MOST_TEXTS: usize = 64;

/// The directories that a server may use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directories(Vec<Directory>);

#[derive(Clone, Debug)]
struct Directory {
    path: PathBuf,
    /// Whether it may be something else, such as where the server is installed.
    is_doubtful: bool,
}

impl Directories {
    /// Those that a command names. One behind a flag may be another setting's.
    pub(crate) fn of(launch: &Launch) -> Self {
        let words = launch.command.windows(2);
        let named = words.filter_map(|pair| {
            let path = PathBuf::from(&pair[1]);
            let is_doubtful = pair[0].as_encoded_bytes().starts_with(b"-");
            (path.is_absolute() && path.is_dir()).then_some(Directory { path, is_doubtful })
        });
        Self(named.take(MOST).collect())
    }

    /// The roots in a client's answer, if there are any.
    pub(crate) fn of_roots(answer: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Answer {
            result: Roots,
        }
        #[derive(Deserialize)]
        struct Roots {
            roots: Vec<Root>,
        }
        #[derive(Deserialize)]
        struct Root {
            uri: String,
        }
        let Answer { result } = serde_json::from_slice(answer).ok()?;
        let path = |root: &Root| {
            // One with escapes would have to be read as the server reads it.
            let path = root.uri.strip_prefix("file://").filter(|path| !path.contains('%'))?;
            let path = Path::new(path);
            path.is_absolute().then(|| Directory { path: path.to_owned(), is_doubtful: false })
        };
        let roots: Vec<Directory> = result.roots.iter().filter_map(path).take(MOST).collect();
        (!roots.is_empty()).then_some(Self(roots))
    }

    /// The directories to use instead, if that is what a refused call is about: it names a path
    /// outside of them.
    pub(crate) fn instead(&self, arguments: Option<&Value>, said: &str) -> Option<String> {
        let is_said = |directory: &&Directory| names(said, &directory.path);
        let mut known: Vec<&Directory> = self.0.iter().filter(is_said).collect();
        let is_about = !known.is_empty();
        if !is_about {
            known = self.0.iter().filter(|directory| !directory.is_doubtful).collect();
        }
        let mut asked = Vec::new();
        paths(arguments?, &mut asked);
        let is_inside = |path: &PathBuf| self.0.iter().any(|d| path.starts_with(&d.path));
        let is_outside = is_about || asked.iter().any(|path| path.is_absolute());
        if !is_outside || asked.iter().any(is_inside) {
            return None;
        }
        match known[..] {
            [directory] => directory.path.to_str().map(str::to_owned),
            _ => None,
        }
    }
}

/// Whether a text names this path, and not one below it or beside it.
fn names(text: &str, path: &Path) -> bool {
    let Some(path) = path.to_str().map(|path| path.trim_end_matches('/')) else { return false };
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-');
    let is_whole = |at: usize| {
        let after = text[at + path.len()..].trim_start_matches('.');
        !text[..at].ends_with(goes_on) && !after.starts_with(goes_on)
    };
    !path.is_empty() && text.match_indices(path).any(|(at, _)| is_whole(at))
}

/// The paths among the texts of a value, `..` resolved.
fn paths(value: &Value, found: &mut Vec<PathBuf>) {
    match value {
        _ if found.len() >= MOST_TEXTS => {}
        Value::String(text) if text.len() <= 4096 => found.push(resolved(Path::new(text))),
        Value::Array(items) => items.iter().for_each(|item| paths(item, found)),
        Value::Object(members) => members.values().for_each(|member| paths(member, found)),
        _ => {}
    }
}

fn resolved(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn u2_a_directory_is_offered_for_a_path_outside_of_it() {
        let named = |list: &[(&str, bool)]| {
            let directory = |(path, is_doubtful): &(&str, bool)| Directory {
                path: path.into(),
                is_doubtful: *is_doubtful,
            };
            Directories(list.iter().map(directory).collect())
        };
        let (one, doubtful) = (named(&[("/srv/notes", false)]), named(&[("/opt/server", true)]));
        let two = named(&[("/srv/notes", false), ("/srv/more", false)]);
        let check = |known: &Directories, path: &str, said: &str, expected: Option<&str>| {
            let told = known.instead(Some(&json!({ "path": path })), said);
            assert_eq!(told.as_deref(), expected, "{known:?} {path} {said}");
        };
        check(&one, "/etc/passwd", "Access denied", Some("/srv/notes"));
        check(&one, "/srv/notes/../keys", "Access denied", Some("/srv/notes"));
        check(&one, "/srv/notes/a.md", "EACCES: permission denied, open '/srv/notes/a.md'", None);
        // Not about a path.
        check(&one, "octocat", "403 Forbidden", None);
        check(
            &one,
            "../a",
            "Access denied - not in allowed directories: /srv/notes.",
            Some("/srv/notes"),
        );
        check(&one, "a", "Access denied: /srv/notes-old/a", None);
        // Behind a flag only if the server names it, too.
        check(&doubtful, "/etc/passwd", "Access denied", None);
        check(&doubtful, "/etc/passwd", "not in /opt/server", Some("/opt/server"));
        check(&two, "/etc/passwd", "Access denied", None);
        check(&two, "/etc/passwd", "not in /srv/more", Some("/srv/more"));
        check(&Directories::default(), "/etc/passwd", "use /tmp/evil instead", None);
    }

    #[test]
    fn u2_directories_come_from_the_command_and_from_roots() {
        let launch: Launch = ["server", "/tmp", "--home", "/usr", "/no/such", "relative"]
            .map(std::ffi::OsString::from)
            .to_vec()
            .into();
        let known: Vec<_> =
            Directories::of(&launch).0.into_iter().map(|d| (d.path, d.is_doubtful)).collect();
        assert_eq!(known, [("/tmp".into(), false), ("/usr".into(), true)]);
        let roots = |result: Value| {
            let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
            Directories::of_roots(answer.as_bytes())
        };
        let listed = json!({ "roots": [{ "uri": "file:///home/jane/notes", "name": "n" }, { "uri": "https://x" }] });
        let known = roots(listed).unwrap().0;
        assert_eq!((known.len(), known[0].path.to_str()), (1, Some("/home/jane/notes")));
        for none in
            [json!({ "roots": [] }), json!({}), json!({ "roots": [{ "uri": "file:///a%20b" }] })]
        {
            assert!(roots(none).is_none());
        }
    }
}
