//! What a legacy client has its server do from now on: how much to log, which resources to watch.
//! A server that was started anew is told again.

use serde_json::{Value, json};

use crate::wire;

const SET_LEVEL: &str = "logging/setLevel";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// More are not remembered: no client may fill the memory with them.
const MOST: usize = 1024;

/// All that hold, from the oldest on.
#[derive(Default)]
pub(crate) struct Orders(Vec<Order>);

struct Order {
    method: &'static str,
    /// The resource, where it is about one.
    uri: Option<String>,
    params: Box<str>,
    /// The id under which the server was told again.
    id: String,
}

impl Orders {
    /// Whether a request is one.
    pub(crate) fn are_given_by(method: &str) -> bool {
        matches!(method, SET_LEVEL | SUBSCRIBE | UNSUBSCRIBE)
    }

    /// The server has done what the client asked for.
    pub(crate) fn done(&mut self, method: &str, params: &str) {
        let uri = wire::member::<String>(params, "uri");
        let (method, uri, holds) = match (method, uri) {
            (SET_LEVEL, _) => (SET_LEVEL, None, true),
            (SUBSCRIBE, Some(uri)) => (SUBSCRIBE, Some(uri), true),
            (UNSUBSCRIBE, Some(uri)) => (SUBSCRIBE, Some(uri), false),
            _ => return,
        };
        self.0.retain(|order| (order.method, &order.uri) != (method, &uri));
        if holds && self.0.len() < MOST {
            self.0.push(Order { method, uri, params: params.into(), id: String::new() });
        }
    }

    /// What to tell a new server, each under an id of our own.
    pub(crate) fn again(&mut self, mut own_id: impl FnMut() -> String) -> Vec<Vec<u8>> {
        let again = |order: &mut Order| {
            order.id = own_id();
            wire::request(&order.id, order.method, &order.params)
        };
        self.0.iter_mut().map(again).collect()
    }

    /// What the server was told under this id.
    pub(crate) fn under(&self, id: &str) -> Option<Value> {
        let order = self.0.iter().find(|order| order.id == id)?;
        Some(json!({ "method": order.method, "uri": order.uri }))
    }
}
