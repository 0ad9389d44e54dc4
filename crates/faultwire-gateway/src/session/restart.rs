//! When a server that ended is started again. Pure: what happened in, what to do out.

use std::time::Duration;

use crate::settings::Restart;

/// How often in a row the server ended without having served anybody.
#[derive(Debug, Default)]
pub(super) struct History {
    in_vain: u32,
    /// How often in a row it ended in order, with nothing to do.
    rested: u32,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Start it after this long.
    After(Duration),
    /// Leave it.
    GiveUp,
}

impl History {
    /// It ended. `served` says whether it had answered something, be it the handshake, and was
    /// given something to do.
    pub(super) fn ended(&mut self, served: bool, settings: &Restart) -> Next {
        (self.in_vain, self.rested) = if served { (0, 0) } else { (self.in_vain + 1, 0) };
        if self.in_vain > settings.limit { Next::GiveUp } else { wait(self.in_vain, settings) }
    }

    /// It ended in order, with nothing to do: that is no reason to give it up.
    pub(super) fn rested(&mut self, settings: &Restart) -> Next {
        if settings.limit == 0 {
            return self.ended(false, settings);
        }
        self.rested = self.rested.saturating_add(1);
        wait(self.rested, settings)
    }

    pub(super) fn in_vain(&self) -> u32 {
        self.in_vain
    }
}

/// The wait after the n-th time.
fn wait(n: u32, settings: &Restart) -> Next {
    let Some(doubled) = n.checked_sub(1) else { return Next::After(Duration::ZERO) };
    let factor = 1u32.checked_shl(doubled).unwrap_or(u32::MAX);
    let wait = settings.base.checked_mul(factor).unwrap_or(settings.cap);
    Next::After(wait.min(settings.cap))
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

    #[test]
    fn who_ends_in_order_is_not_given_up() {
        let settings =
            Restart { limit: 2, base: Duration::from_millis(200), cap: Duration::from_secs(1) };
        let mut history = History::default();
        for wait in [200, 400, 800, 1000, 1000] {
            assert_eq!(history.rested(&settings), Next::After(Duration::from_millis(wait)));
        }
        let never = Restart { limit: 0, ..settings };
        assert_eq!(History::default().rested(&never), Next::GiveUp);
    }
}
