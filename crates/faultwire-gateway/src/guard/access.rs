//! Who may do what, and how often.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use faultwire_contract::{Condition, Contract, Outcome, nearest};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use sha2::{Digest, Sha256};

use crate::failing::CallFailure;
use crate::guard::budget::{Allowance, Budgets};
use crate::guard::scope::{Kind, Scope, ScopeSettings};

/// So many in such a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub times: NonZeroU32,
    /// In which time.
    pub per: Duration,
}

/// What is known of a client.
#[derive(Clone, Default)]
pub struct ClientSettings {
    /// What it is called.
    pub name: String,
    /// The secret that it shows; none lets everybody in under this name.
    pub token: Option<String>,
    /// Its role, for contracts that show it.
    pub role: Option<String>,
    /// Patterns of the tools, prompts and resources that it may use.
    pub scope: ScopeSettings,
    /// How often it may call.
    pub rate: Option<Rate>,
    /// How often it may call each of these tools.
    pub tool_rates: HashMap<String, Rate>,
    /// How often it may call in a period.
    pub budget: Option<Allowance>,
}

/// Who prints settings does not print a secret.
impl std::fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All clients, found by what they show.
#[derive(Default)]
pub(crate) struct Clients {
    by_token: HashMap<[u8; 32], Arc<Access>>,
    /// Clients without a token, where that is allowed.
    anybody: Option<Arc<Access>>,
    /// By name, with the digest of what they show.
    by_name: HashMap<String, (Option<[u8; 32]>, Arc<Access>)>,
}

/// What one client may do.
pub(crate) struct Access {
    pub name: String,
    pub role: Option<String>,
    /// Whether the client has shown who it is.
    pub has_token: bool,
    scope: Scope,
    rate: Option<Limiter>,
    tool_rates: HashMap<String, Limiter>,
    budget: Option<Allowance>,
    budgets: Arc<Budgets>,
}

/// A rate, and how much of it is used up.
#[derive(Clone)]
struct Limiter {
    rate: Rate,
    used: Arc<DefaultDirectRateLimiter>,
}

impl Limiter {
    /// None for a rate so high that it limits nothing.
    fn new(rate: Rate) -> Option<Self> {
        let quota = Quota::with_period(rate.per / rate.times.get())?;
        let used = Arc::new(RateLimiter::direct(quota.allow_burst(rate.times)));
        Some(Self { rate, used })
    }
}

impl Clients {
    /// Without any, everybody is let in. What was used up of a rate stays so, if there were
    /// clients before.
    pub(crate) fn new(
        settings: &[ClientSettings],
        budgets: &Arc<Budgets>,
        before: Option<&Self>,
    ) -> Self {
        let mut clients = Self::default();
        for client in settings {
            let before = before.and_then(|before| before.by_name.get(&client.name));
            let before = before.map(|(_, access)| &**access);
            let access = Arc::new(Access::new(client, Arc::clone(budgets), before));
            let shown = client.token.as_deref().map(digest);
            match shown {
                Some(shown) => drop(clients.by_token.insert(shown, Arc::clone(&access))),
                None => clients.anybody = Some(Arc::clone(&access)),
            }
            clients.by_name.insert(client.name.clone(), (shown, access));
        }
        if settings.is_empty() {
            let open = Access::new(&ClientSettings::default(), Arc::clone(budgets), None);
            clients.anybody = Some(Arc::new(open));
        }
        clients
    }

    /// Warns of patterns that match no tool: a misspelt one allows or denies nothing.
    pub(crate) fn warn_of_unmatched(&self, tools: &[String]) {
        for (client, (_, access)) in &self.by_name {
            for pattern in access.scope.unmatched(tools) {
                let word = pattern.trim_matches('*');
                let near = nearest(word, tools.iter().map(String::as_str));
                tracing::warn!(client, pattern, nearest = near, "the pattern matches no tool");
            }
        }
    }

    /// Whether a client is still let in, by what it showed before.
    pub(crate) fn still_knows(&self, name: &str, before: &Self) -> bool {
        let shown = |clients: &Self| match clients.by_name.get(name) {
            Some((shown, _)) => Some(*shown),
            None => clients.anybody.as_ref().filter(|anybody| anybody.name == name).map(|_| None),
        };
        shown(self).is_some_and(|now| shown(before) == Some(now))
    }

    /// Who shows this. Tokens are looked up by their digest, so that no comparison tells how
    /// much of one was right.
    pub(crate) fn find(&self, token: Option<&str>) -> Option<&Arc<Access>> {
        match token {
            Some(token) => self.by_token.get(&digest(token)).or(self.anybody.as_ref()),
            None => self.anybody.as_ref(),
        }
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl Access {
    fn new(client: &ClientSettings, budgets: Arc<Budgets>, before: Option<&Self>) -> Self {
        let limiter = |rate: Rate, before: Option<&Limiter>| match before {
            Some(before) if before.rate == rate => Some(before.clone()),
            _ => Limiter::new(rate),
        };
        let of_tool = |(tool, rate): (&String, &Rate)| {
            let before = before.and_then(|before| before.tool_rates.get(tool));
            Some((tool.clone(), limiter(*rate, before)?))
        };
        let rate_before = before.and_then(|before| before.rate.as_ref());
        Self {
            name: client.name.clone(),
            role: client.role.clone(),
            has_token: client.token.is_some(),
            scope: Scope::new(&client.scope),
            rate: client.rate.and_then(|rate| limiter(rate, rate_before)),
            tool_rates: client.tool_rates.iter().filter_map(of_tool).collect(),
            budget: client.budget,
            budgets,
        }
    }

    /// What is against a call, if something is. It is paid for if nothing is.
    pub(crate) fn objection(&self, contract: &Contract, tool: Option<&str>) -> Option<CallFailure> {
        let refused =
            |condition| CallFailure::observed(contract, condition).outcome(Outcome::NotSent);
        if tool.is_some_and(|tool| !self.scope.allows(Kind::Tool, tool)) {
            // The same words whether there is such a tool or not.
            return Some(
                refused(Condition::Forbidden).saying("This client may not call this tool"),
            );
        }
        let limiters = [self.rate.as_ref(), tool.and_then(|tool| self.tool_rates.get(tool))];
        for limiter in limiters.into_iter().flatten() {
            if let Err(not_until) = limiter.used.check() {
                let wait = not_until.wait_time_from(DefaultClock::default().now());
                return Some(
                    refused(Condition::RateLimited)
                        .saying("This client calls too often")
                        .after(contract, Some(wait.max(Duration::from_millis(1)))),
                );
            }
        }
        let allowance = self.budget?;
        let wait = self.budgets.spend(&self.name, allowance)?;
        Some(
            refused(Condition::BudgetExceeded)
                .saying(format!("The budget of {allowance} is used up"))
                .after(contract, Some(wait)),
        )
    }

    /// What the client may use.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Whether there is anything to look at.
    pub(crate) fn is_free(&self) -> bool {
        self.scope.is_free()
            && self.rate.is_none()
            && self.tool_rates.is_empty()
            && self.budget.is_none()
    }
}
