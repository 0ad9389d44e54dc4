//! Tokens that clients hand back: what was signed, and by whom. `wr1.PAYLOAD.SIGNATURE`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use faultwire::workrail::Code;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::failures::TokenError;

const VERSION: &str = "wr1";

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Shows where a session stands.
    State,
    /// Says that its step is done.
    Ack,
}

#[derive(Serialize, Deserialize)]
pub struct Token {
    pub scope: Scope,
    pub session: String,
    /// How many steps were done.
    pub node: usize,
    pub workflow_hash: String,
}

impl Token {
    pub fn sign(&self, key: &[u8; 64]) -> Result<String, serde_json::Error> {
        let signed = format!("{VERSION}.{}", BASE64.encode(serde_json::to_vec(self)?));
        let signature = BASE64.encode(mac(key, &signed).finalize().into_bytes());
        Ok(format!("{signed}.{signature}"))
    }

    /// What a token says, if it is ours and meant for this.
    pub fn read(text: &str, key: &[u8; 64], scope: Scope) -> Result<Self, TokenError> {
        let malformed = || TokenError(Code::TokenInvalidFormat);
        let (signed, signature) = text.rsplit_once('.').ok_or_else(malformed)?;
        let (version, payload) = signed.split_once('.').ok_or_else(malformed)?;
        match version.strip_prefix("wr").and_then(|it| it.parse::<u32>().ok()) {
            Some(_) if version == VERSION => {}
            Some(_) => return Err(TokenError(Code::TokenUnsupportedVersion)),
            None => return Err(malformed()),
        }
        let payload = BASE64.decode(payload).map_err(|_| malformed())?;
        let signature = BASE64.decode(signature).map_err(|_| malformed())?;
        let verified = mac(key, signed).verify_slice(&signature);
        verified.map_err(|_| TokenError(Code::TokenBadSignature))?;
        let token: Self = serde_json::from_slice(&payload).map_err(|_| malformed())?;
        if token.scope == scope { Ok(token) } else { Err(TokenError(Code::TokenScopeMismatch)) }
    }
}

fn mac(key: &[u8; 64], signed: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new(key.into());
    mac.update(signed.as_bytes());
    mac
}
