//! Some codes of a contract: what one tool, or one part of a server, may answer.

use crate::typed::TypedCode;

/// Codes that a failure may have. All of a contract are one such set; [`codes!`](crate::codes!)
/// makes smaller ones.
pub trait CodeSet: 'static {
    /// The enum that they are of.
    type Code: TypedCode;
    /// Which of them.
    const LISTED: Listed;
}

impl<C: TypedCode> CodeSet for C {
    type Code = C;
    const LISTED: Listed = Listed::All;
}

/// Which codes a set has.
#[derive(Clone, Copy, Debug)]
pub enum Listed {
    /// All of the contract.
    All,
    /// The one of this name.
    One(&'static str),
    /// Those of each of these.
    Several(&'static [Self]),
}

impl Listed {
    /// Whether the code of this name is one of them.
    #[must_use]
    pub const fn holds(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => is_same(one.as_bytes(), id.as_bytes()),
            Self::Several(several) => {
                let mut at = 0;
                while at < several.len() {
                    if several[at].holds(id) {
                        return true;
                    }
                    at += 1;
                }
                false
            }
        }
    }

    /// Whether all of the other's codes are among them.
    #[must_use]
    pub const fn holds_all(&self, other: &Self) -> bool {
        match other {
            Self::All => matches!(self, Self::All),
            Self::One(id) => self.holds(id),
            Self::Several(several) => {
                let mut at = 0;
                while at < several.len() {
                    if !self.holds_all(&several[at]) {
                        return false;
                    }
                    at += 1;
                }
                true
            }
        }
    }
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Names some codes of a contract, so that a function says in its type what it may answer. A
/// failure of any other code does not compile there.
///
/// Sets can include other sets. `widen` converts a failure of a smaller set:
///
/// ```
/// use faultwire::{Failure, Widen, tuitbot};
///
/// faultwire::codes! {
///     /// What the platform may answer.
///     pub Platform of tuitbot { XRateLimited, XAuthExpired }
///     /// What posting may end in.
///     pub Posting of tuitbot: Platform { TweetTooLong }
/// }
///
/// fn send(text: &str) -> Result<(), Failure<Platform>> {
///     Err(tuitbot::x_auth_expired().into())
/// }
///
/// fn post(text: &str) -> Result<(), Failure<Posting>> {
///     if text.len() > 280 {
///         return Err(tuitbot::tweet_too_long().into());
///     }
///     send(text).widen()?;
///     Ok(())
/// }
/// assert_eq!(post("Ahoy").unwrap_err().code(), tuitbot::Code::XAuthExpired);
/// ```
///
/// A code that is not in the set does not compile, nor does a set of another contract:
///
/// ```compile_fail
/// # use faultwire::{Failure, tuitbot};
/// faultwire::codes! { Reading of tuitbot { NotFound } }
/// fn read() -> Result<(), Failure<Reading>> {
///     Err(tuitbot::x_forbidden().into())
/// }
/// # let _ = read();
/// ```
///
/// ```compile_fail
/// # use faultwire::{kaiza, tuitbot};
/// faultwire::codes! { Mixed of tuitbot: kaiza::Code { NotFound } }
/// ```
#[macro_export]
macro_rules! codes {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis $name:ident of $contract:ident $(: $($base:ty),+)? {
            $($code:ident),* $(,)?
        }
    )+) => { $(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug)]
        $visibility enum $name {}

        impl $crate::CodeSet for $name {
            type Code = $contract::Code;
            const LISTED: $crate::Listed = $crate::Listed::Several(&[
                $($($crate::__listed::<$base, $contract::Code>(),)+)?
                $($crate::Listed::One($contract::Code::$code.id()),)*
            ]);
        }
    )+ };
}

/// The codes of a set, which is of this contract.
#[doc(hidden)]
#[must_use]
pub const fn listed<S: CodeSet<Code = C>, C: TypedCode>() -> Listed {
    S::LISTED
}
