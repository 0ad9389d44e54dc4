//! Finding out which era a server speaks, by asking it.

use std::pin::pin;
use std::time::Duration;

use serde_json::{Value, json};

use crate::connection::Connection;
use crate::era::{meta, ourselves};
use crate::guard::version::LEGACY;
use crate::session::Phase;
use crate::wire;

/// What a server speaks, and what it said of itself.
pub(crate) enum Era {
    /// Each request stands for itself.
    Modern,
    /// A handshake comes first, and has been made.
    Legacy { initialized: Value },
}

/// How long a server may be silent to a question of the modern era before it is asked in the
/// legacy one, too: some do not answer at all before the handshake.
const SILENCE: Duration = Duration::from_secs(10);

/// How often to look whether a server is there.
const LOOK: Duration = Duration::from_millis(50);

/// Finds out what a server speaks: it is asked in the modern way, and if it does not like that,
/// greeted in the legacy one. None when it answers neither.
pub(crate) async fn of(connection: &Connection, patience: Duration) -> Option<Era> {
    let mut discovered = pin!(discover(connection, patience));
    let is_modern = tokio::time::timeout(SILENCE.min(patience), discovered.as_mut()).await;
    let is_silent = is_modern.is_err();
    if is_modern.is_ok_and(|discovered| discovered.is_some()) {
        return Some(Era::Modern);
    }
    let greeted = tokio::time::timeout(patience, greet(connection, patience));
    let initialized = if is_silent {
        // One that takes long to start answers what it was asked first.
        tokio::select! {
            biased;
            Some(_) = discovered.as_mut() => {
                start_anew(connection).await;
                return Some(Era::Modern);
            }
            greeted = greeted => greeted,
        }
    } else {
        greeted.await
    };
    let initialized = initialized.ok().flatten()?;
    let thanks = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", wire::INITIALIZED);
    connection.session().agree(thanks.as_bytes());
    connection.tell_server(thanks.as_bytes());
    Some(Era::Legacy { initialized })
}

/// A server that was greeted in the legacy way, and then turned out to be of the modern era, may
/// take that greeting at its word. A process begins once more without it.
async fn start_anew(connection: &Connection) {
    connection.session().forget_handshake();
    if connection.writer.lock().forget_greeting() {
        return;
    }
    connection.kill_server();
    loop {
        tokio::time::sleep(LOOK).await;
        let session = connection.session();
        match session.phase() {
            // The new one has answered nothing yet.
            Phase::Up if !session.has_answer() => return,
            Phase::Down { until: None, .. } => return,
            _ => {}
        }
    }
}

/// Greets a server in the legacy way, and again if it had to be restarted.
async fn greet(connection: &Connection, patience: Duration) -> Option<Value> {
    let hello = json!({
        "protocolVersion": LEGACY[0],
        "capabilities": {},
        "clientInfo": ourselves(),
    });
    for _ in 0..GREETINGS {
        loop {
            match connection.session().phase() {
                Phase::Down { until: None, .. } => return None,
                Phase::Down { .. } => {}
                Phase::Up | Phase::Opening { .. } => break,
            }
            tokio::time::sleep(LOOK).await;
        }
        let answered = connection.ask(wire::INITIALIZE, &hello);
        match tokio::time::timeout(patience, answered).await {
            Ok(Ok(line)) => return result(&line),
            // It ended before it answered.
            Ok(Err(_)) => tokio::time::sleep(LOOK).await,
            Err(_) => return None,
        }
    }
    None
}

/// One that ends at a question of the other era is there again for the first of these.
const GREETINGS: usize = 3;

/// Asks in the modern way.
pub(crate) async fn discover(connection: &Connection, patience: Duration) -> Option<Value> {
    let params = json!({ "_meta": meta(&json!({}), &ourselves()) });
    let discovered = answer(connection, wire::DISCOVER, &params, patience).await?;
    discovered.get("supportedVersions")?.as_array()?;
    Some(discovered)
}

/// The result of a question of our own.
async fn answer(
    connection: &Connection,
    method: &str,
    params: &Value,
    patience: Duration,
) -> Option<Value> {
    let answered = connection.ask(method, params);
    let line = tokio::time::timeout(patience, answered).await.ok()?.ok()?;
    result(&line)
}

fn result(line: &[u8]) -> Option<Value> {
    let mut reply: Value = serde_json::from_slice(line).ok()?;
    Some(reply.get_mut("result")?.take()).filter(Value::is_object)
}
