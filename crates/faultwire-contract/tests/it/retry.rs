//! The retry decision: a truth table over everything it looks at (A7, O6).

use std::time::Duration;

use faultwire_contract::{Backoff, Outcome, Question, Reason, RetryClass, Safety, Verdict, decide};
use proptest::prelude::*;

const BACKOFF: Backoff = Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(30) };

/// The rule as a person would say it.
fn expected(q: &Question) -> Result<(), Reason> {
    let retryable = q.class != RetryClass::Never;
    let safe = q.outcome == Outcome::NotSent
        || q.safety == Safety::ReadOnly
        || q.safety == Safety::Idempotent;
    match (retryable, safe, q.budget == Some(0)) {
        (false, _, _) => Err(Reason::NeverRetried),
        (true, false, _) => Err(Reason::MayHaveRun),
        (true, true, true) => Err(Reason::BudgetSpent),
        (true, true, false) => Ok(()),
    }
}

#[test]
fn a7_the_whole_truth_table() {
    let mut rows = 0;
    for class in RetryClass::ALL {
        for outcome in Outcome::ALL {
            for safety in Safety::ALL {
                for attempt in [1, 2, 7, 64, u32::MAX] {
                    for budget in [None, Some(0), Some(1), Some(100)] {
                        for named_delay in [None, Some(Duration::from_millis(1234))] {
                            let question = Question {
                                class,
                                named_delay,
                                outcome,
                                safety,
                                attempt,
                                budget,
                                backoff: BACKOFF,
                                random: u64::MAX,
                            };
                            check(&question);
                            rows += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(rows, 4 * 3 * 3 * 5 * 4 * 2);
}

fn check(q: &Question) {
    let verdict = decide(q);
    match (expected(q), verdict) {
        (Err(reason), Verdict::Stop(found)) => assert_eq!(found, reason, "{q:?}"),
        (Ok(()), Verdict::Retry { delay, ceiling }) => match (q.class, q.named_delay) {
            (RetryClass::Immediate, _) => {
                assert_eq!((delay, ceiling), (Duration::ZERO, Duration::ZERO));
            }
            (_, Some(named)) => assert_eq!((delay, ceiling), (named, named), "a named delay wins"),
            (_, None) => {
                assert!(delay <= ceiling && ceiling <= BACKOFF.cap);
                assert_eq!(ceiling, BACKOFF.ceiling(q.attempt));
            }
        },
        (wanted, found) => panic!("{q:?}: wanted {wanted:?}, found {found:?}"),
    }
}

#[test]
fn o6_delays_double_up_to_the_cap() {
    let ceilings: Vec<u128> = (1..=9).map(|n| BACKOFF.ceiling(n).as_millis()).collect();
    assert_eq!(ceilings, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
    assert_eq!(BACKOFF.ceiling(u32::MAX), BACKOFF.cap);
    assert_eq!(BACKOFF.delay(1, 0), Duration::ZERO);
    assert_eq!(BACKOFF.delay(1, u64::MAX), Duration::from_millis(500));
    assert_eq!(BACKOFF.delay(1, u64::MAX / 2), Duration::from_millis(250));
}

proptest! {
    #[test]
    fn jitter_is_full(attempt in 1u32..100, random in any::<u64>()) {
        prop_assert!(BACKOFF.delay(attempt, random) <= BACKOFF.ceiling(attempt));
    }
}
