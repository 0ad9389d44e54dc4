//! Sessions: a file for each, to which a line is added with each step. Clients hold tokens of them,
//! which are signed: `wr1.PAYLOAD.SIGNATURE`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use faultwire::workrail::{Code, Failure};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use crate::failures::{AckFailure, Health, Reason, told};

const VERSION: &str = "wr1";
const EVENT_VERSION: u64 = 1;

/// What a token is for: to show where a session stands, or to say that its step is done.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Scope {
    State,
    Ack,
}

#[derive(Serialize, Deserialize)]
pub struct Token {
    pub scope: Scope,
    pub session: String,
    /// How many steps were done.
    pub node: usize,
    pub workflow: String,
    pub hash: String,
}

impl Token {
    pub fn sign(&self, key: &[u8; 64]) -> Result<String, serde_json::Error> {
        let signed = format!("{VERSION}.{}", BASE64.encode(serde_json::to_vec(self)?));
        let signature = BASE64.encode(mac(key, &signed).finalize().into_bytes());
        Ok(format!("{signed}.{signature}"))
    }

    /// The content of a token, if its signature is valid and it is for this purpose.
    pub fn read(text: &str, key: &[u8; 64], scope: Scope) -> Result<Self, Failure> {
        let malformed = || told(Code::TokenInvalidFormat, json!({}));
        let (signed, signature) = text.rsplit_once('.').ok_or_else(malformed)?;
        let (version, payload) = signed.split_once('.').ok_or_else(malformed)?;
        version.strip_prefix("wr").and_then(|it| it.parse::<u32>().ok()).ok_or_else(malformed)?;
        if version != VERSION {
            return Err(told(Code::TokenUnsupportedVersion, json!({})));
        }
        let payload = BASE64.decode(payload).map_err(|_| malformed())?;
        let signature = BASE64.decode(signature).map_err(|_| malformed())?;
        let verified = mac(key, signed).verify_slice(&signature);
        verified.map_err(|_| told(Code::TokenBadSignature, json!({})))?;
        let token: Self = serde_json::from_slice(&payload).map_err(|_| malformed())?;
        let is_meant = token.scope == scope;
        is_meant.then_some(token).ok_or_else(|| told(Code::TokenScopeMismatch, json!({})))
    }
}

fn mac(key: &[u8; 64], signed: &str) -> Hmac<Sha256> {
    Hmac::<Sha256>::new(key.into()).chain_update(signed)
}

/// A session that is used exclusively while its file is locked.
pub struct Session(File);

impl Session {
    pub fn open(path: &Path, is_new: bool) -> Result<Self, Failure> {
        let file = OpenOptions::new().read(true).append(true).create_new(is_new).open(path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::NotFound => AckFailure::MissingNodeOrRun.into(),
            _ => unusable(&error),
        })?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(told(Code::TokenSessionLocked, json!({}))),
            Err(TryLockError::Error(error)) => Err(unusable(&error)),
        }
    }

    /// How many events there are, if all of them are valid.
    pub fn events(&mut self) -> Result<usize, Failure> {
        let mut text = String::new();
        self.0.read_to_string(&mut text).map_err(|error| unusable(&error))?;
        if text.is_empty() {
            return Err(corrupt(0, &"The event log is empty").into());
        }
        for (index, line) in text.lines().enumerate() {
            let event: Value = serde_json::from_str(line).map_err(|it| corrupt(index, &it))?;
            if event["v"].as_u64().is_some_and(|v| v > EVENT_VERSION) {
                let what = format!("Event {index} has version {}", event["v"]);
                let reason = reason("UNKNOWN_EVENT_VERSION", &what);
                return Err(Health::UnknownVersion { reason }.into());
            }
            if event["v"] != EVENT_VERSION || event["index"] != index {
                return Err(corrupt(index, &"Event log index mismatch").into());
            }
        }
        Ok(text.lines().count())
    }

    /// Adds what was known at the beginning, or what a step brought.
    pub fn append(&mut self, index: usize, brought: &Map<String, Value>) -> Result<(), Failure> {
        let line =
            format!("{}\n", json!({ "v": EVENT_VERSION, "index": index, "brought": brought }));
        let written = self.0.write_all(line.as_bytes()).and_then(|()| self.0.sync_data());
        written.map_err(|error| unusable(&error))
    }
}

fn corrupt(index: usize, message: &impl ToString) -> Health {
    let reason = reason("STORE_INVARIANT_VIOLATION", message);
    if index == 0 { Health::CorruptHead { reason } } else { Health::CorruptTail { reason } }
}

fn unusable(error: &io::Error) -> Failure {
    AckFailure::SessionStoreError { error: reason(&error.kind().to_string(), error) }.into()
}

fn reason(code: &str, message: &impl ToString) -> Reason {
    Reason { code: code.to_owned(), message: message.to_string() }
}

/// The key that signs tokens; generated if it does not exist, readable only by its owner.
pub fn key(path: &Path) -> Result<[u8; 64], Box<dyn std::error::Error>> {
    if let Ok(mut file) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        let mut key = [0; 64];
        getrandom::fill(&mut key)?;
        file.write_all(&key)?;
    }
    fs::read(path)?.try_into().map_err(|_| "the key is not 64 bytes long".into())
}
