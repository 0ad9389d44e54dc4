//! Whose a task is (X3). Clients of one server must not see or cancel each other's tasks, so a task
//! belongs to the client for which it was begun; one of unknown owner is not found.

use std::collections::VecDeque;
use std::sync::LazyLock;

use hashbrown::HashMap;
use memchr::memmem::Finder;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use crate::wire;

/// So many tasks are remembered; the oldest are forgotten, and are not found from then on.
const MOST: usize = 16_384;

/// The member of `_meta` that says which task a message belongs to.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Every call and every reply is searched for these.
static TASK_ID: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"taskId\""));
static RELATED_TASK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("related-task"));

/// The owners of the tasks of one server.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    owners: HashMap<Box<str>, Box<str>>,
    oldest: VecDeque<Box<str>>,
}

impl Tasks {
    /// Notes the tasks that a reply tells of as begun. Most replies tell of none.
    pub(crate) fn learn(&self, owner: &str, reply: &[u8]) {
        if TASK_ID.find(reply).is_none() {
            return;
        }
        let Ok(reply) = serde_json::from_slice::<Value>(reply) else { return };
        let result = &reply["result"];
        let told =
            [&result["task"]["taskId"], &result["taskId"], &result["_meta"][RELATED]["taskId"]];
        for id in told.into_iter().filter_map(Value::as_str) {
            self.begin(owner, id);
        }
    }

    /// A task that is known already keeps its owner: a server must not hand it on.
    fn begin(&self, owner: &str, id: &str) {
        let mut known = self.known();
        if known.owners.contains_key(id) {
            return;
        }
        if known.oldest.len() == MOST
            && let Some(oldest) = known.oldest.pop_front()
        {
            known.owners.remove(&oldest);
        }
        known.oldest.push_back(id.into());
        known.owners.insert(id.into(), owner.into());
    }

    pub(crate) fn is_owner(&self, owner: &str, id: &str) -> bool {
        self.known().owners.get(id).is_some_and(|known| **known == *owner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock()
    }
}

/// The tasks that a request names: an error if one of them is named by no text.
pub(crate) fn named(method: &str, params: Option<&str>) -> Result<Vec<String>, NoTask> {
    let Some(raw) = params.filter(|raw| raw.starts_with('{')) else {
        return if is_about_one(method) { Err(NoTask) } else { Ok(Vec::new()) };
    };
    let is_about_one = is_about_one(method);
    // A name with an escape in it is found by reading, not by looking.
    let bytes = raw.as_bytes();
    let names_some =
        || RELATED_TASK.find(bytes).is_some() || memchr::memchr(b'\\', bytes).is_some();
    if !is_about_one && method != wire::LISTEN && !names_some() {
        return Ok(Vec::new());
    }
    let params: Value = serde_json::from_str(raw).map_err(|_| NoTask)?;
    let mut all = Vec::new();
    let related = params.get("_meta").and_then(|meta| meta.get(RELATED));
    let own = is_about_one.then(|| params.get("taskId").unwrap_or(&Value::Null));
    let listened = params.get("notifications").and_then(|wanted| wanted.get("taskIds"));
    let listened = listened.and_then(Value::as_array).into_iter().flatten();
    let related = related.map(|related| related.get("taskId").unwrap_or(&Value::Null));
    for id in own.into_iter().chain(related).chain(listened) {
        all.push(id.as_str().ok_or(NoTask)?.to_owned());
    }
    Ok(all)
}

/// A request names a task by something that is no text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoTask;

/// Whether a method is about one task.
fn is_about_one(method: &str) -> bool {
    method.starts_with("tasks/") && method != LIST
}

/// The method that lists all tasks.
pub(crate) const LIST: &str = "tasks/list";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn x3_a_task_belongs_to_the_client_that_began_it() {
        let tasks = Tasks::default();
        tasks.learn("ann", br#"{"id":1,"result":{"task":{"taskId":"t1","status":"working"}}}"#);
        tasks.learn("ann", br#"{"id":1,"result":{"resultType":"task","taskId":"t2"}}"#);
        assert!(tasks.is_owner("ann", "t1") && tasks.is_owner("ann", "t2"));
        assert!(!tasks.is_owner("bob", "t1"));
        tasks.learn("bob", br#"{"id":1,"result":{"task":{"taskId":"t1"}}}"#);
        assert!(tasks.is_owner("ann", "t1") && !tasks.is_owner("bob", "t1"));
        assert!(!tasks.is_owner("ann", "t9"));
    }

    #[test]
    fn x7_tasks_are_forgotten_when_there_are_too_many() {
        let tasks = Tasks::default();
        for number in 0..=MOST {
            tasks.begin("ann", &number.to_string());
        }
        assert!(!tasks.is_owner("ann", "0"));
        assert!(tasks.is_owner("ann", "1"));
        assert_eq!(tasks.known().owners.len(), MOST);
    }

    #[test]
    fn x3_all_tasks_that_a_request_names_are_found() {
        let check = |method: &str, params: Value, expected: Result<&[&str], NoTask>| {
            let found = named(method, Some(&params.to_string()));
            let expected =
                expected.map(|all| all.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
            assert_eq!(found, expected, "{method} {params}");
        };
        check("tasks/get", json!({ "taskId": "a" }), Ok(&["a"]));
        check("tasks/get", json!({ "taskId": 1 }), Err(NoTask));
        check("tasks/cancel", json!({}), Err(NoTask));
        check("tasks/own", json!({ "taskId": "a" }), Ok(&["a"]));
        check("tasks/list", json!({}), Ok(&[]));
        check("tools/call", json!({ "name": "a", "arguments": { "taskId": "b" } }), Ok(&[]));
        let meta = json!({ "_meta": { RELATED: { "taskId": "b" } } });
        check("tools/call", meta.clone(), Ok(&["b"]));
        check("tasks/result", json!({ "taskId": "a", "_meta": meta["_meta"] }), Ok(&["a", "b"]));
        let wanted = json!({ "notifications": { "taskIds": ["a", "b"] } });
        check("subscriptions/listen", wanted, Ok(&["a", "b"]));
        let escaped = r#"{"_meta":{"io.modelcontextprotocol/related\u002dtask":{"taskId":"b"}}}"#;
        assert_eq!(named("tools/call", Some(escaped)), Ok(vec!["b".to_owned()]));
    }
}
