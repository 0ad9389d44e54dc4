//! When a server that ended is started again. Pure: what happened in, what to do out.

use std::time::Duration;

use crate::settings::Restart;

/// How often in a row the server ended without having served anybody.
#[derive(Debug, Default)]
pub(crate) struct History {
    in_vain: u32,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Start it after this long.
    After(Duration),
    /// Leave it.
    GiveUp,
}

impl History {
    /// It ended. `served` says whether it had answered something, be it the handshake, and was
    /// given something to do.
    pub(crate) fn ended(&mut self, served: bool, settings: &Restart) -> Next {
        self.in_vain = if served { 0 } else { self.in_vain + 1 };
        match self.in_vain {
            0 => Next::After(Duration::ZERO),
            n if n > settings.limit => Next::GiveUp,
            n => {
                let factor = 1u32.checked_shl(n - 1).unwrap_or(u32::MAX);
                let wait = settings.base.checked_mul(factor).unwrap_or(settings.cap);
                Next::After(wait.min(settings.cap))
            }
        }
    }

    pub(crate) fn in_vain(&self) -> u32 {
        self.in_vain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_until_the_limit_and_serving_starts_anew() {
        let settings =
            Restart { limit: 4, base: Duration::from_millis(200), cap: Duration::from_secs(1) };
        let after = |ms| Next::After(Duration::from_millis(ms));
        let mut history = History::default();
        assert_eq!(history.ended(true, &settings), after(0));
        for wait in [200, 400, 800, 1000] {
            assert_eq!(history.ended(false, &settings), after(wait));
        }
        assert_eq!(history.ended(false, &settings), Next::GiveUp);
        assert_eq!(history.ended(true, &settings), after(0));
        assert_eq!(history.ended(false, &settings), after(200));
    }
}
