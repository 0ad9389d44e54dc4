//! Failures of drafts, and of smaller sets of codes.

use crate::draft::Draft;
use crate::failure::Failure;
use crate::set::CodeSet;
use crate::typed::Row;

impl<S: CodeSet> Failure<S> {
    /// For a larger set of codes, which `into` makes it a failure of.
    #[must_use]
    pub fn widen(self) -> Widened<S> {
        Widened(self)
    }
}

impl<R: Row, S: CodeSet<Code = R::Code>> From<Draft<R>> for Failure<S> {
    fn from(draft: Draft<R>) -> Self {
        const { assert!(S::LISTED.holds(R::ID), "the set of codes here lacks this one: add it") };
        Self::told(draft.into_report())
    }
}

/// Lets failures of a smaller set of codes pass where a larger one is answered.
pub trait Widen<T, S> {
    /// For `?`, which then makes it a failure of the larger set.
    fn widen(self) -> Result<T, Widened<S>>;
}

impl<T, S: CodeSet> Widen<T, S> for Result<T, Failure<S>> {
    fn widen(self) -> Result<T, Widened<S>> {
        self.map_err(Failure::widen)
    }
}

/// A failure on its way into a larger set of codes.
#[derive(Clone, Debug)]
pub struct Widened<S>(Failure<S>);

impl<A: CodeSet, B: CodeSet<Code = A::Code>> From<Widened<A>> for Failure<B> {
    fn from(Widened(failure): Widened<A>) -> Self {
        const { assert!(B::LISTED.holds_all(&A::LISTED), "the set of codes here lacks some") };
        Self::told(failure.into_report())
    }
}
