//! Whether to send a call again, and when: one pure function (A7, O6).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::origin::Outcome;

/// What a code says about sending the same call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryClass {
    /// The same call cannot succeed.
    Never,
    /// At once.
    Immediate,
    /// After a fixed delay that the row or the failure names.
    After,
    /// With growing, jittered delays, or after the delay that the failure names.
    Backoff,
}

impl RetryClass {
    /// Every class.
    pub const ALL: [Self; 4] = [Self::Never, Self::Immediate, Self::After, Self::Backoff];

    /// The name in contract files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Immediate => "immediate",
            Self::After => "after",
            Self::Backoff => "backoff",
        }
    }

    /// The class of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether the same call may succeed later: the boolean that envelopes show.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        !matches!(self, Self::Never)
    }

    /// Whether a failure of this class may name a delay.
    #[must_use]
    pub const fn takes_delay(self) -> bool {
        matches!(self, Self::After | Self::Backoff)
    }
}

/// How safe it is to run the tool twice, from its annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Safety {
    /// Nothing is known: running it twice may do harm.
    Unknown,
    /// `idempotentHint`: the second run changes nothing more.
    Idempotent,
    /// `readOnlyHint`: it changes nothing at all.
    ReadOnly,
}

impl Safety {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::Idempotent, Self::ReadOnly];
}

/// How delays grow: `base · 2^(attempt-1)`, never beyond `cap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The most that is waited after the first attempt.
    pub base: Duration,
    /// The longest delay.
    pub cap: Duration,
}

/// Where a contract says nothing, and for servers without one.
impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_millis(500), cap: Duration::from_secs(30) }
    }
}

impl Backoff {
    /// The longest wait after the given attempt, counted from 1.
    #[must_use]
    pub fn ceiling(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(63);
        self.base
            .checked_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .map_or(self.cap, |d| d.min(self.cap))
    }

    /// Full jitter: anywhere between nothing and the ceiling. `random` is uniform over `u64`.
    #[must_use]
    pub fn delay(&self, attempt: u32, random: u64) -> Duration {
        let ceiling = u64::try_from(self.ceiling(attempt).as_millis()).unwrap_or(u64::MAX);
        let scaled = (u128::from(random) * (u128::from(ceiling) + 1)) >> 64;
        Duration::from_millis(u64::try_from(scaled).unwrap_or(ceiling))
    }
}

/// Everything that the decision looks at.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The failure's class.
    pub class: RetryClass,
    /// The delay that the failure or its row names.
    pub named_delay: Option<Duration>,
    /// How far the call got.
    pub outcome: Outcome,
    /// What is known of the tool.
    pub safety: Safety,
    /// Which attempt failed, from 1.
    pub attempt: u32,
    /// How many retries are left to spend; `None` is without limit.
    pub budget: Option<u32>,
    /// How delays grow.
    pub backoff: Backoff,
    /// A uniform random number: the edge draws it.
    pub random: u64,
}

/// The reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Sending the call again is safe and may help.
    Retryable,
    /// The code says that it cannot succeed.
    NeverRetried,
    /// The tool may have run, and is neither read-only nor idempotent.
    MayHaveRun,
    /// No retries are left.
    BudgetSpent,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it again after `delay`, which is at most `ceiling`.
    Retry {
        /// How long to wait.
        delay: Duration,
        /// The most that could have been drawn.
        ceiling: Duration,
    },
    /// Do not send it again.
    Stop(Reason),
}

/// Decides whether to retry the call.
///
/// A call is only retried if its code is retryable **and** the tool certainly did not run or may
/// safely run twice (A7). A delay that the failure names takes precedence over the computed one
/// (O6).
///
/// ```
/// use std::time::Duration;
/// use faultwire_contract::{Backoff, Outcome, Question, Reason, RetryClass, Safety, Verdict, decide};
///
/// let question = Question {
///     class: RetryClass::Backoff,
///     named_delay: Some(Duration::from_secs(2)),
///     outcome: Outcome::NotSent,
///     safety: Safety::Unknown,
///     attempt: 1,
///     budget: None,
///     backoff: Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(30) },
///     random: 0,
/// };
/// let wait = Duration::from_secs(2);
/// assert_eq!(decide(&question), Verdict::Retry { delay: wait, ceiling: wait });
/// assert_eq!(
///     decide(&Question { outcome: Outcome::MaybeExecuted, ..question }),
///     Verdict::Stop(Reason::MayHaveRun),
/// );
/// ```
#[must_use]
pub fn decide(q: &Question) -> Verdict {
    if !q.class.is_retryable() {
        return Verdict::Stop(Reason::NeverRetried);
    }
    if q.outcome != Outcome::NotSent && q.safety == Safety::Unknown {
        return Verdict::Stop(Reason::MayHaveRun);
    }
    if q.budget == Some(0) {
        return Verdict::Stop(Reason::BudgetSpent);
    }
    let exactly = |delay| Verdict::Retry { delay, ceiling: delay };
    match (q.class, q.named_delay) {
        (RetryClass::After | RetryClass::Backoff, Some(named)) => exactly(named),
        (RetryClass::Backoff | RetryClass::After, None) => Verdict::Retry {
            delay: q.backoff.delay(q.attempt, q.random),
            ceiling: q.backoff.ceiling(q.attempt),
        },
        (RetryClass::Immediate | RetryClass::Never, _) => exactly(Duration::ZERO),
    }
}
