//! Which Host and Origin a request may have: a page in a browser must not reach a gateway on this
//! machine.

use hyper::Uri;
use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;

use crate::guard::peer::Network;

/// Which names the gateway goes by, and which pages may call it.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// Names beside the loopback ones, without a port; any port will do.
    pub names: Vec<String>,
    /// Origins beside the loopback ones, as a browser writes them.
    pub origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub proxies: Vec<Network>,
}

impl Hosts {
    /// What is against a request with these headers.
    pub(crate) fn objection(&self, headers: &HeaderMap) -> Option<&'static str> {
        let mut hosts = headers.get_all(HOST).iter();
        let (host, second) = (hosts.next(), hosts.next());
        if second.is_some() || !host.is_some_and(|host| self.takes_host(host)) {
            return Some("This Host is not served here");
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next()?;
        let is_fine = origins.next().is_none() && self.takes_origin(origin);
        (!is_fine).then_some("This Origin may not call")
    }

    /// Whether the host is this machine itself.
    pub(crate) fn is_loopback(headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).map(HeaderValue::as_bytes).unwrap_or_default();
        authority(host).is_some_and(|host| is_loopback(host.host()))
    }

    fn takes_host(&self, host: &HeaderValue) -> bool {
        let is_plain = |name: &str| is_plain(host.as_bytes(), name.as_bytes());
        LOOPBACK.iter().any(|name| is_plain(name))
            || authority(host.as_bytes()).is_some_and(|host| self.is_ours(&host))
    }

    /// Loopback pages may call: they are served by this machine. `null` is never allowed.
    fn takes_origin(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        if self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let Some(rest) = rest.filter(|rest| !rest.contains(['/', '?', '#'])) else { return false };
        authority(rest.as_bytes()).is_some_and(|host| is_loopback(host.host()))
    }

    fn is_ours(&self, host: &Authority) -> bool {
        let name = host.host();
        is_loopback(name) || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// A host and perhaps a port, and nothing else: no user, no path.
fn authority(bytes: &[u8]) -> Option<Authority> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.is_empty() || text.contains(['@', '/', '?', '#', ' ', ',', '\\']) {
        return None;
    }
    let authority = Authority::try_from(text).ok()?;
    let bare = match authority.port_u16() {
        Some(port) => text.strip_suffix(&format!(":{port}"))? == authority.host(),
        None => text == authority.host(),
    };
    let uri = Uri::builder().scheme("http").authority(authority.clone()).path_and_query("/");
    (bare && uri.build().is_ok()).then_some(authority)
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

fn is_loopback(name: &str) -> bool {
    LOOPBACK.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether it is just this name, with a port as it is usually written: nearly all are, and need no
/// closer look.
fn is_plain(host: &[u8], name: &[u8]) -> bool {
    let Some((start, port)) = host.split_at_checked(name.len()) else { return false };
    let is_port = match port {
        [] => true,
        [b':', digits @ ..]
            if digits.first().is_some_and(|first| (b'1'..=b'9').contains(first)) =>
        {
            std::str::from_utf8(digits).is_ok_and(|digits| digits.parse::<u16>().is_ok())
        }
        _ => false,
    };
    is_port && start.eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(&'static str, bool)], accept: impl Fn(&HeaderValue) -> bool) {
        for (text, expected) in rows {
            let value = HeaderValue::from_bytes(text.as_bytes()).unwrap();
            assert_eq!(accept(&value), *expected, "{text:?}");
        }
    }

    fn hosts() -> Hosts {
        Hosts {
            names: vec!["gate.example".into(), "[fd00::7]".into()],
            origins: vec!["https://app.example".into(), "https://app.example:8443".into()],
            proxies: Vec::new(),
        }
    }

    #[test]
    fn hosts_are_taken_by_name() {
        let rows = [
            ("localhost", true),
            ("LOCALHOST", true),
            ("localhost:8080", true),
            ("127.0.0.1", true),
            ("127.0.0.1:1", true),
            ("[::1]", true),
            ("[::1]:65535", true),
            ("gate.example", true),
            ("Gate.Example:443", true),
            ("[fd00::7]:80", true),
            ("", false),
            (":80", false),
            ("localhost.", false),
            ("localhost.evil", false),
            ("localhost.evil:80", false),
            ("evil-localhost", false),
            ("localhost@evil", false),
            ("evil@localhost", false),
            ("user:pass@localhost", false),
            ("localhost:80:80", false),
            ("localhost:", false),
            ("localhost:x", false),
            ("localhost:99999", false),
            ("localhost:-1", false),
            ("localhost/evil", false),
            ("localhost evil", false),
            ("localhost,evil", false),
            ("http://localhost", false),
            ("127.0.0.1.evil", false),
            ("127.0.0.2", false),
            ("127.1", false),
            ("0.0.0.0", false),
            ("2130706433", false),
            ("0x7f.0.0.1", false),
            ("::1", false),
            ("[::1", false),
            ("[::1]evil", false),
            ("[::1]:80evil", false),
            ("[::ffff:127.0.0.1]", false),
            ("[0:0:0:0:0:0:0:1]", false),
            ("169.254.169.254", false),
            ("gate.example.evil", false),
            ("evil.gate.example", false),
            ("locаlhost", false),
            ("null", false),
        ];
        check(&rows, |host| hosts().takes_host(host));
    }

    #[test]
    fn origins_are_taken_as_browsers_write_them() {
        let rows = [
            ("http://localhost", true),
            ("http://localhost:3000", true),
            ("https://localhost:3000", true),
            ("http://127.0.0.1:6274", true),
            ("http://[::1]:1234", true),
            ("https://app.example", true),
            ("https://app.example:8443", true),
            ("HTTPS://APP.EXAMPLE", true),
            ("null", false),
            ("", false),
            ("localhost", false),
            ("file://", false),
            ("http://", false),
            ("http://app.example", false),
            ("https://app.example:444", false),
            ("https://app.example.evil", false),
            ("https://evil.app.example", false),
            ("https://app.example/", false),
            ("http://localhost.evil", false),
            ("http://localhost.evil:80", false),
            ("http://localhost@evil", false),
            ("http://evil@localhost", false),
            ("http://user:pass@127.0.0.1", false),
            ("http://localhost/", false),
            ("http://localhost#evil", false),
            ("http://localhost?evil", false),
            ("http://127.0.0.1.evil", false),
            ("http://127.0.0.2", false),
            ("http://[::1]evil", false),
            ("http://[::2]", false),
            ("http://0.0.0.0", false),
            ("ws://localhost", false),
            ("chrome-extension://abcdef", false),
            ("http://localhost:80:80", false),
            ("http://localhost:99999", false),
            ("http://localhost http://evil", false),
            ("*", false),
        ];
        check(&rows, |origin| hosts().takes_origin(origin));
    }
}
