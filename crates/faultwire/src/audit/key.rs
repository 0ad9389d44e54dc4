//! The key that signs checkpoints, and the key derived from it that hashes arguments.

use std::fmt;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::audit::hash::Hash;

/// Ed25519, as signed notes number it.
const ED25519: u8 = 1;

/// A signing key. As text it is `PRIVATE+KEY+name+id+data`, as for any signed note.
pub struct Key {
    secret: SigningKey,
    public: PublicKey,
    /// Hashes arguments; its key is derived from the secret.
    fingerprints: Hmac<Sha256>,
}

/// The half of a key that checks signatures. As text it is `name+id+data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    name: String,
    key: VerifyingKey,
}

/// Why a text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// It does not have the right form, or its parts do not match.
    #[error("not a signing key; expected one line, PRIVATE+KEY+name+id+data")]
    Private,
    /// It does not have the right form, or its parts do not match.
    #[error("not a public key; expected one line, name+id+data")]
    Public,
}

impl Key {
    /// A new key with this name.
    pub fn generate(name: &str) -> io::Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        Ok(Self::from_seed(name, seed))
    }

    /// Reads a key from its line.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let (name, id, seed) =
            text.trim().strip_prefix("PRIVATE+KEY+").and_then(fields).ok_or(BadKey::Private)?;
        let key = Self::from_seed(name, seed);
        (id == key.public.id()).then_some(key).ok_or(BadKey::Private)
    }

    fn from_seed(name: &str, seed: [u8; 32]) -> Self {
        let secret = SigningKey::from_bytes(&seed);
        let public = PublicKey { name: name.to_owned(), key: secret.verifying_key() };
        let own = keyed(secret.as_bytes(), b"faultwire audit log: arguments, version 1");
        let fingerprints = Hmac::new(&padded(&own.0).into());
        Self { secret, public, fingerprints }
    }

    /// The line to keep it as. It is a secret.
    #[must_use]
    pub fn to_line(&self) -> String {
        let data = STANDARD.encode(tagged(self.secret.as_bytes()));
        format!("PRIVATE+KEY+{}+{:08x}+{data}", self.public.name, self.public.id())
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The signature of a text.
    #[must_use]
    pub fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.secret.sign(text).to_bytes()
    }

    /// A hash that can only be made with the key: it shows that arguments are equal, but does not
    /// allow to guess them.
    #[must_use]
    pub fn fingerprint(&self, bytes: &[u8]) -> Hash {
        let mac = self.fingerprints.clone();
        Hash(mac.chain_update(bytes).finalize().into_bytes().into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.public)
    }
}

impl PublicKey {
    /// Reads a public key from its line.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let (name, id, bytes) = fields(text.trim()).ok_or(BadKey::Public)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| BadKey::Public)?;
        let public = Self { name: name.to_owned(), key };
        (id == public.id()).then_some(public).ok_or(BadKey::Public)
    }

    /// The name that its signatures carry.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first four bytes of a hash over name and key.
    #[must_use]
    pub fn id(&self) -> u32 {
        let hash = Sha256::new()
            .chain_update(&self.name)
            .chain_update("\n")
            .chain_update(tagged(self.key.as_bytes()))
            .finalize();
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
    }

    /// Whether the signature is this key's over the text.
    #[must_use]
    pub fn has_signed(&self, text: &[u8], signature: &[u8; 64]) -> bool {
        self.key.verify_strict(text, &Signature::from_bytes(signature)).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = STANDARD.encode(tagged(self.key.as_bytes()));
        write!(f, "{}+{:08x}+{data}", self.name, self.id())
    }
}

/// `name+id+data`, with 32 bytes of an Ed25519 key in the data.
fn fields(line: &str) -> Option<(&str, u32, [u8; 32])> {
    let (name, rest) = line.split_once('+')?;
    let (id, data) = rest.split_once('+')?;
    let named = !name.is_empty() && !name.contains(char::is_whitespace);
    let id = u32::from_str_radix(id, 16).ok().filter(|n| named && format!("{n:08x}") == id)?;
    let data = STANDARD.decode(data).ok()?;
    match data.split_first() {
        Some((&ED25519, key)) => Some((name, id, key.try_into().ok()?)),
        _ => None,
    }
}

fn tagged(key: &[u8; 32]) -> [u8; 33] {
    let mut bytes = [ED25519; 33];
    bytes[1..].copy_from_slice(key);
    bytes
}

fn keyed(key: &[u8; 32], bytes: &[u8]) -> Hash {
    let mac = Hmac::<Sha256>::new(&padded(key).into());
    Hash(mac.chain_update(bytes).finalize().into_bytes().into())
}

/// HMAC fills a key up with zeros to the block of its hash.
fn padded(key: &[u8; 32]) -> [u8; 64] {
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    block
}
