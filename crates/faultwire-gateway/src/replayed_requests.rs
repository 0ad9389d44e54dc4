//! What a legacy client has its server do from now on: how much to log, which resources to watch.
//! A restarted server gets these requests again.

use serde_json::{Map, Value, json};

use crate::wire;

const SET_LEVEL: &str = "logging/setLevel";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// More is not remembered: no client may fill the memory with it.
const MOST_BYTES: usize = 256 * 1024;
/// What an order takes beside its text.
const BESIDE: usize = 128;
/// An order that so many servers in a row did not live to answer may be what they died of.
const MOST_VAIN: u8 = 2;

/// All that hold, from the oldest on.
#[derive(Default)]
pub(crate) struct ReplayedRequests(Vec<ReplayedRequest>);

struct ReplayedRequest {
    method: &'static str,
    /// The resource, where it is about one.
    uri: Option<String>,
    params: String,
    /// The id under which the server was told again, until it answers.
    id: Option<String>,
    /// How many servers ended before they answered.
    vain: u8,
}

impl ReplayedRequests {
    /// Whether a request is one.
    pub(crate) fn are_given_by(method: &str) -> bool {
        matches!(method, SET_LEVEL | SUBSCRIBE | UNSUBSCRIBE)
    }

    /// The server has done what the client asked for. Whether that is remembered.
    pub(crate) fn done(&mut self, method: &str, params: &str) -> bool {
        let Ok(mut params) = serde_json::from_str::<Map<String, Value>>(params) else {
            return true;
        };
        // What it says of the request, of its progress and trace, was for the first time.
        params.remove("_meta");
        let uri = params.get("uri").and_then(Value::as_str).map(str::to_owned);
        let (method, uri, holds) = match (method, uri) {
            (SET_LEVEL, _) => (SET_LEVEL, None, true),
            (SUBSCRIBE, Some(uri)) => (SUBSCRIBE, Some(uri), true),
            (UNSUBSCRIBE, Some(uri)) => (SUBSCRIBE, Some(uri), false),
            _ => return true,
        };
        self.0.retain(|order| (order.method, &order.uri) != (method, &uri));
        let order = ReplayedRequest {
            method,
            uri,
            params: Value::Object(params).to_string(),
            id: None,
            vain: 0,
        };
        let bytes: usize = self.0.iter().map(ReplayedRequest::bytes).sum();
        let fits = bytes + order.bytes() <= MOST_BYTES;
        if holds && fits {
            self.0.push(order);
        }
        fits || !holds
    }

    /// What to tell a new server, each under an id of our own.
    pub(crate) fn again(&mut self, mut own_id: impl FnMut() -> String) -> Vec<Vec<u8>> {
        let again = |order: &mut ReplayedRequest| {
            let id = order.id.insert(own_id());
            wire::request(id, order.method, &order.params)
        };
        self.0.iter_mut().map(again).collect()
    }

    /// The new server has answered under this id. What it was told, if it will not do it.
    pub(crate) fn answered(&mut self, id: &str, refused: bool) -> Option<Value> {
        let at = self.0.iter().position(|order| order.id.as_deref() == Some(id))?;
        if refused {
            return Some(self.0.remove(at).lost("the new server refused it"));
        }
        (self.0[at].id, self.0[at].vain) = (None, 0);
        None
    }

    /// The server has ended. What will not be told to the next.
    pub(crate) fn interrupted(&mut self) -> Vec<Value> {
        for order in &mut self.0 {
            order.vain += u8::from(order.id.take().is_some());
        }
        let poisonous = self.0.extract_if(.., |order| order.vain >= MOST_VAIN);
        poisonous.map(|order| order.lost("new servers ended before they answered it")).collect()
    }
}

impl ReplayedRequest {
    fn bytes(&self) -> usize {
        BESIDE + self.params.len() + self.uri.as_ref().map_or(0, String::len)
    }

    fn lost(&self, why: &str) -> Value {
        json!({ "method": self.method, "uri": self.uri, "why": why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(replayed: &mut ReplayedRequests, from: u64) -> Vec<String> {
        let mut next = from;
        let own_id = || {
            next += 1;
            next.to_string()
        };
        let lines = replayed.again(own_id);
        lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
    }

    #[test]
    fn what_is_too_much_is_not_remembered() {
        let mut replayed = ReplayedRequests::default();
        let watch = |n: usize| format!(r#"{{"uri":"file:///{n}/{}"}}"#, "x".repeat(50_000));
        let kept = (0..10).filter(|n| replayed.done(SUBSCRIBE, &watch(*n))).count();
        assert_eq!(kept, 2);
        assert!(replayed.done(SET_LEVEL, r#"{"level":"info"}"#), "a short one has room");
        assert!(replayed.done(UNSUBSCRIBE, &watch(7)), "there was nothing to remember");
        assert!(replayed.done(UNSUBSCRIBE, &watch(0)));
        assert!(replayed.done(SUBSCRIBE, &watch(9)));
        assert_eq!(said(&mut replayed, 0).len(), 3);
        for odd in ["", "[]", "7", "{}", r#"{"uri":7}"#] {
            assert!(replayed.done(SUBSCRIBE, odd), "{odd}");
        }
        assert_eq!(said(&mut replayed, 3).len(), 3);
    }

    #[test]
    fn an_order_that_servers_die_of_is_not_given_for_ever() {
        let mut replayed = ReplayedRequests::default();
        replayed.done(SUBSCRIBE, r#"{"uri":"good"}"#);
        replayed.done(SUBSCRIBE, r#"{"uri":"bad"}"#);
        assert_eq!(said(&mut replayed, 0).len(), 2);
        replayed.answered("1", false);
        assert!(replayed.interrupted().is_empty(), "once is not enough");
        assert_eq!(said(&mut replayed, 2).len(), 2);
        replayed.answered("3", false);
        let lost = replayed.interrupted();
        assert_eq!((lost.len(), &lost[0]["uri"]), (1, &json!("bad")));
        assert_eq!(said(&mut replayed, 4).len(), 1);
        assert!(replayed.answered("4", true).is_none(), "no request had that id");
        assert_eq!(replayed.answered("5", true).unwrap()["uri"], "good");
        assert!(said(&mut replayed, 5).is_empty());
    }
}
