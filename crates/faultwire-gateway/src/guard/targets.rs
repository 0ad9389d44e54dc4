//! What a request is about, beside a tool: the resources and prompts that it names. A client that
//! is kept to some of them may name no others, and may use no method of which it is not known what
//! it names.

use faultwire_contract::protocol::{NOTIFICATIONS, REQUESTS};
use serde::Deserialize;
use serde_json::Value;

use crate::guard::scope::{Kind, Scope};
use crate::wire;

/// Why a client may not send a request, if it may not.
pub(crate) fn objection(scope: &Scope, method: &str, params: Option<&str>) -> Option<&'static str> {
    if scope.is_free() {
        return None;
    }
    if !REQUESTS.contains(&method) {
        return Some("This client may not use this method");
    }
    let params = Params::read(params);
    let fine = match method {
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            scope.allows_named(Kind::Resource, params.uri.as_ref())
        }
        "prompts/get" => scope.allows_named(Kind::Prompt, params.name.as_ref()),
        "completion/complete" => completes(scope, params.reference.as_ref()),
        wire::LISTEN => listens(scope, params.notifications.as_ref()),
        _ => true,
    };
    (!fine).then_some("This client may not use this resource or prompt")
}

/// Whether a client that is kept to some tools may send a notification.
pub(crate) fn may_notify(scope: &Scope, method: &str) -> bool {
    scope.is_free() || NOTIFICATIONS.contains(&method)
}

/// The list in the result of a method, and the member that names its items.
pub(crate) fn listed_by(method: &str) -> Option<(Kind, &'static str, &'static str)> {
    match method {
        wire::TOOLS_LIST => Some((Kind::Tool, "tools", "name")),
        "resources/list" => Some((Kind::Resource, "resources", "uri")),
        "resources/templates/list" => Some((Kind::Resource, "resourceTemplates", "uriTemplate")),
        "prompts/list" => Some((Kind::Prompt, "prompts", "name")),
        _ => None,
    }
}

fn completes(scope: &Scope, reference: Option<&Value>) -> bool {
    let member = |name| reference.and_then(|reference| reference.get(name));
    match member("type").and_then(Value::as_str) {
        Some("ref/prompt") => scope.allows_named(Kind::Prompt, member("name")),
        Some("ref/resource") => scope.allows_named(Kind::Resource, member("uri")),
        _ => false,
    }
}

/// A client of the modern era names the resources whose changes it wants to hear of.
fn listens(scope: &Scope, notifications: Option<&Value>) -> bool {
    let Some(uris) = notifications.and_then(|wanted| wanted.get("resourceSubscriptions")) else {
        return true;
    };
    let Some(uris) = uris.as_array() else { return !scope.limits(Kind::Resource) };
    uris.iter().all(|uri| scope.allows_named(Kind::Resource, Some(uri)))
}

impl Scope {
    /// Whether the thing that a value names may be used. One that names nothing is the server's
    /// to refuse, where everything may be used.
    fn allows_named(&self, kind: Kind, name: Option<&Value>) -> bool {
        match name.and_then(Value::as_str) {
            Some(name) => self.allows(kind, name),
            None => !self.limits(kind),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    uri: Option<Value>,
    name: Option<Value>,
    #[serde(rename = "ref")]
    reference: Option<Value>,
    notifications: Option<Value>,
}

impl Params {
    fn read(params: Option<&str>) -> Self {
        let params = params.filter(|raw| raw.starts_with('{'));
        params.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::guard::scope::ScopeSettings;

    #[test]
    fn x1_a_client_names_only_what_it_may_use() {
        let scope = Scope::new(&ScopeSettings {
            tools: Some(vec!["read_*".to_owned()]),
            resources: Some(vec!["memo://*".to_owned()]),
            prompts: Some(vec!["greet".to_owned()]),
            ..ScopeSettings::default()
        });
        let check = |method: &str, params: Value, fine: bool| {
            let found = objection(&scope, method, Some(&params.to_string()));
            assert_eq!(found.is_none(), fine, "{method} {params}: {found:?}");
        };
        check("ping", json!({}), true);
        check("tools/list", json!({}), true);
        check("resources/read", json!({ "uri": "memo://a" }), true);
        check("resources/read", json!({ "uri": "file://a" }), false);
        check("resources/read", json!({ "uri": ["memo://a"] }), false);
        check("resources/read", json!({}), false);
        check("resources/subscribe", json!({ "uri": "file://a" }), false);
        check("prompts/get", json!({ "name": "greet" }), true);
        check("prompts/get", json!({ "name": "Greet" }), false);
        let prompt = |name| json!({ "ref": { "type": "ref/prompt", "name": name } });
        check("completion/complete", prompt("greet"), true);
        check("completion/complete", prompt("other"), false);
        let resource = |uri| json!({ "ref": { "type": "ref/resource", "uri": uri } });
        check("completion/complete", resource("memo://{id}"), true);
        check("completion/complete", resource("file://{id}"), false);
        check("completion/complete", json!({ "ref": { "type": "ref/other" } }), false);
        let listen = |uris: Value| json!({ "notifications": { "resourceSubscriptions": uris } });
        check(
            "subscriptions/listen",
            json!({ "notifications": { "toolsListChanged": true } }),
            true,
        );
        check("subscriptions/listen", listen(json!(["memo://a"])), true);
        check("subscriptions/listen", listen(json!(["memo://a", "file://b"])), false);
        check("subscriptions/listen", listen(json!("file://b")), false);
        check("own/method", json!({}), false);
        assert!(may_notify(&scope, "notifications/cancelled"));
        assert!(!may_notify(&scope, "own/notice"));
    }
}
