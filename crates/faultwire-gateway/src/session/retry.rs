//! Whether the gateway itself sends a failed call again (A7): only if told to, only what may
//! safely run twice or surely never ran, and only while the budget lasts.

use std::time::{Duration, Instant};

use faultwire_contract::{Fault, Outcome, Question, Verdict, decide};

use crate::call::Call;
use crate::settings::Retry;

/// What a call earns, in hundredths of a retry.
const EARNED: u64 = 20;
const WHOLE: u64 = 100;

/// Retries that may still be spent.
pub(super) struct Budget {
    hundredths: u64,
    most: u64,
}

impl Budget {
    pub(super) fn new(retry: Retry) -> Self {
        let most = u64::from(retry.budget) * WHOLE;
        Self { hundredths: most, most }
    }

    /// A call came.
    pub(super) fn earn(&mut self) {
        self.hundredths = (self.hundredths + EARNED).min(self.most);
    }

    fn left(&self) -> u32 {
        u32::try_from(self.hundredths / WHOLE).unwrap_or(u32::MAX)
    }

    /// When the call is sent again, if it is.
    pub(super) fn again(
        &mut self,
        retry: Retry,
        call: &Call,
        fault: &Fault,
        random: u64,
        now: Instant,
    ) -> Option<Instant> {
        let left = self.left().min(retry.times.saturating_sub(call.attempt - 1));
        let question = Question {
            class: fault.retry(),
            named_delay: fault.retry_after(),
            outcome: fault.public().outcome.unwrap_or(Outcome::MaybeExecuted),
            safety: call.facts.safety,
            attempt: call.attempt,
            budget: Some(left),
            backoff: fault.contract().retry.backoff,
            random,
        };
        let Verdict::Retry { delay, .. } = decide(&question) else { return None };
        let at = now + delay;
        // There must be time left for the answer, too.
        let in_time = call.deadline.is_none_or(|deadline| at + Duration::from_millis(1) < deadline);
        in_time.then(|| self.hundredths = self.hundredths.saturating_sub(WHOLE))?;
        Some(at)
    }
}
