//! Who is on the other side of a connection, seen through the proxies that the operator trusts.

use std::net::IpAddr;
use std::str::FromStr;

use hyper::header::HeaderMap;

/// Headers that only proxies write.
const FORWARDED: [&str; 5] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/// A network of addresses: `10.0.0.0/8`, `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// The text is no network.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an address or network; write \"127.0.0.1\" or \"10.0.0.0/8\"")]
pub struct BadNetwork(String);

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let bad = || BadNetwork(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(|_| bad())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let most = width(address);
        let bits = bits.unwrap_or(most);
        if bits > most { Err(bad()) } else { Ok(Self { address, bits }) }
    }
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let shift = width(self.address) - self.bits;
        let head = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()).checked_shr(shift).unwrap_or(0),
            IpAddr::V6(address) => address.to_bits().checked_shr(shift).unwrap_or(0),
        };
        width(address) == width(self.address) && head(address) == head(self.address)
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub address: IpAddr,
    /// Whether the request comes from this machine, and through no proxy.
    pub is_local: bool,
}

impl Peer {
    /// The peer of a connection, or the client that trusted proxies name: the last one in the list
    /// that is no such proxy itself.
    pub(crate) fn of(address: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> Self {
        let address = address.to_canonical();
        let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(address));
        if !is_trusted(address) {
            // Quicker than to look each of them up: a request has few headers.
            let forwarded = || headers.keys().any(|name| FORWARDED.contains(&name.as_str()));
            return Self { address, is_local: address.is_loopback() && !forwarded() };
        }
        let lists = headers.get_all("x-forwarded-for").iter();
        let listed: Vec<&str> =
            lists.flat_map(|list| list.to_str().unwrap_or("?").split(',')).collect();
        let mut client = address;
        for entry in listed.iter().rev() {
            // What cannot be read hides whatever stands before it.
            let Some(named) = parsed(entry.trim()) else { break };
            client = named;
            if !is_trusted(named) {
                break;
            }
        }
        Self { address: client, is_local: false }
    }
}

/// An address as proxies write it, perhaps with a port.
fn parsed(entry: &str) -> Option<IpAddr> {
    let bare = entry.trim_matches('"');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    bare.parse::<std::net::SocketAddr>().ok().map(|address| address.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn check(peer: &str, headers: &[(&str, &str)], trusted: &[&str], expected: (&str, bool)) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        let trusted: Vec<Network> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        let found = Peer::of(peer.parse().unwrap(), &map, &trusted);
        assert_eq!((found.address.to_string().as_str(), found.is_local), expected, "{headers:?}");
    }

    #[test]
    fn x4_a_client_cannot_choose_its_address() {
        let forged = [("x-forwarded-for", "198.51.100.7")];
        check("192.0.2.1", &forged, &[], ("192.0.2.1", false));
        check("192.0.2.1", &forged, &["10.0.0.0/8"], ("192.0.2.1", false));
        check("10.1.2.3", &forged, &["10.0.0.0/8"], ("198.51.100.7", false));
        // What the client wrote itself stands before what the proxy added.
        let both = [("x-forwarded-for", "127.0.0.1, 198.51.100.7, 10.9.9.9")];
        check("10.1.2.3", &both, &["10.0.0.0/8"], ("198.51.100.7", false));
        let twice = [("x-forwarded-for", "127.0.0.1"), ("x-forwarded-for", "198.51.100.7:4711")];
        check("10.1.2.3", &twice, &["10.0.0.0/8"], ("198.51.100.7", false));
        let broken = [("x-forwarded-for", "127.0.0.1, unknown")];
        check("10.1.2.3", &broken, &["10.0.0.0/8"], ("10.1.2.3", false));
        check("::ffff:10.1.2.3", &forged, &["10.0.0.0/8"], ("198.51.100.7", false));
    }

    #[test]
    fn x4_who_comes_through_a_proxy_is_not_local() {
        check("127.0.0.1", &[], &[], ("127.0.0.1", true));
        check("::1", &[], &[], ("::1", true));
        for header in FORWARDED {
            check("127.0.0.1", &[(header, "127.0.0.1")], &[], ("127.0.0.1", false));
        }
        check("127.0.0.1", &[], &["127.0.0.1"], ("127.0.0.1", false));
        check(
            "127.0.0.1",
            &[("x-forwarded-for", "127.0.0.1")],
            &["127.0.0.1"],
            ("127.0.0.1", false),
        );
    }

    #[test]
    fn networks_are_read_strictly() {
        for bad in ["", "x", "10.0.0.0/33", "10.0.0.0/", "::1/129", "localhost", "10.0.0/8"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("203.0.113.9".parse().unwrap()));
        assert!(!all.contains("2001:db8::1".parse().unwrap()));
    }
}
