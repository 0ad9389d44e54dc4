//! Which client may use what, how often, and for how much.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use faultwire::owlclaw::{self as errors, Failure};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde::Deserialize;

use crate::supported;

/// The versions of the capability.
const VERSIONS: [&str; 2] = ["v1", "v2"];

/// All clients, by their tokens.
pub struct Clients(HashMap<String, Client>);

#[derive(Deserialize)]
struct Terms {
    /// The version that the client has agreed to.
    version: String,
    capabilities: Vec<String>,
    per_minute: NonZeroU32,
    /// How many calls are paid for.
    budget: u32,
}

pub struct Client {
    terms: Terms,
    limit: DefaultDirectRateLimiter,
    used: AtomicU32,
}

impl Clients {
    pub fn read(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let terms: HashMap<String, Terms> = serde_json::from_slice(&std::fs::read(path)?)?;
        let client = |terms: Terms| {
            let limit = RateLimiter::direct(Quota::per_minute(terms.per_minute));
            Client { terms, limit, used: AtomicU32::new(0) }
        };
        Ok(Self(terms.into_iter().map(|(token, terms)| (token, client(terms))).collect()))
    }

    /// Whose token it is.
    pub fn who(&self, token: Option<&str>) -> Result<&Client, Failure> {
        let client = token.and_then(|token| self.0.get(token));
        Ok(client.ok_or_else(errors::auth_unauthorized)?)
    }
}

impl Client {
    /// Whether the client may use a capability now, in this version.
    pub fn may(&self, capability: &str, version: Option<&str>) -> Result<(), Failure> {
        let Terms { version: agreed, capabilities, budget, .. } = &self.terms;
        if !capabilities.iter().any(|known| known == capability) {
            return Err(errors::auth_forbidden().into());
        }
        if version.is_some_and(|version| !VERSIONS.contains(&version)) {
            let unsupported = errors::protocol_unsupported_version();
            return Err(unsupported.details(&supported(&VERSIONS)).into());
        }
        if version.is_some_and(|version| version != agreed) {
            let what = format!("This client has agreed to {agreed}");
            return Err(errors::protocol_version_conflict().message(what).into());
        }
        if let Err(until) = self.limit.check() {
            let wait = until.wait_time_from(DefaultClock::default().now());
            return Err(errors::governance_rate_limited().after(wait).into());
        }
        if self.used.fetch_add(1, Ordering::Relaxed) >= *budget {
            self.used.fetch_sub(1, Ordering::Relaxed);
            return Err(errors::governance_budget_exceeded().into());
        }
        Ok(())
    }
}
