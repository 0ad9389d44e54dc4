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
        if self.in_vain > settings.limit { Next::GiveUp } else { self.wait(settings) }
    }

    /// It ended in order, with nothing to do: that is no reason to give it up.
    pub(crate) fn rested(&mut self, settings: &Restart) -> Next {
        if settings.limit == 0 {
            return self.ended(false, settings);
        }
        self.in_vain = (self.in_vain + 1).min(settings.limit);
        self.wait(settings)
    }

    fn wait(&self, settings: &Restart) -> Next {
        let Some(doubled) = self.in_vain.checked_sub(1) else { return Next::After(Duration::ZERO) };
        let factor = 1u32.checked_shl(doubled).unwrap_or(u32::MAX);
        let wait = settings.base.checked_mul(factor).unwrap_or(settings.cap);
        Next::After(wait.min(settings.cap))
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

    #[test]
    fn who_ends_in_order_is_not_given_up() {
        let settings =
            Restart { limit: 2, base: Duration::from_millis(200), cap: Duration::from_secs(1) };
        let mut history = History::default();
        for wait in [200, 400, 400, 400] {
            assert_eq!(history.rested(&settings), Next::After(Duration::from_millis(wait)));
        }
        let never = Restart { limit: 0, ..settings };
        assert_eq!(History::default().rested(&never), Next::GiveUp);
    }
}
