//! A failure on its way to the boundary: what a handler returns.

use std::error::Error;
use std::marker::PhantomData;

use faultwire_contract::{Condition, Fault, FaultError, Report, Stamp};

use crate::edge;
use crate::typed::TypedCode;
use crate::unknown::Unknown;

/// What went wrong, under the contract of `C`. Any error becomes one by `?`, with the code that the
/// contract has for what nobody expected:
///
/// ```
/// use faultwire::{ResultExt, kaiza};
/// use kaiza::{Code, Failure};
///
/// fn read(path: &str) -> Result<String, Failure> {
///     if path.contains("..") {
///         return Err(kaiza::path_traversal_blocked().message("The path leads outside").into());
///     }
///     Ok(std::fs::read_to_string(path).fault(Code::FileReadFailed)?)
/// }
///
/// assert_eq!(read("../x").unwrap_err().code(), Code::PathTraversalBlocked);
/// assert_eq!(read("/nosuch").unwrap_err().code(), Code::FileReadFailed);
/// ```
#[derive(Clone, Debug)]
pub struct Failure<C> {
    report: Box<Report>,
    code: PhantomData<C>,
}

impl<C: TypedCode> Failure<C> {
    /// From a report whose code is one of these.
    pub(crate) fn told(report: Report) -> Self {
        Self { report: Box::new(report), code: PhantomData }
    }

    /// From a report that names its code by a text. One that is not registered is refused (K3).
    pub fn from_report(report: Report) -> Result<Self, FaultError> {
        // The contract has the words for it.
        Fault::new(C::contract(), report.clone(), &Stamp::default())?;
        Ok(Self::told(report))
    }

    /// Its code.
    #[must_use]
    pub fn code(&self) -> C {
        C::from_id(&self.report.code).unwrap_or_else(fallback)
    }

    /// What is told of it, before the contract has made it fit for a client.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The same for whoever adds what the boundary knows.
    pub fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    /// The fault that it is, as of now.
    #[must_use]
    pub fn into_fault(self) -> Fault {
        let stamp = edge::stamp(C::contract());
        self.into_fault_at(&stamp)
    }

    /// The fault that it is, with a stamp from elsewhere.
    #[must_use]
    pub fn into_fault_at(self, stamp: &Stamp) -> Fault {
        let contract = C::contract();
        let known = self.report.session.clone();
        Fault::new(contract, *self.report, stamp).unwrap_or_else(|refused| {
            let condition = Condition::Internal;
            let report = Report {
                condition: Some(condition),
                message: Some(refused.to_string()),
                session: known,
                ..Report::new(&contract.code_for(condition, None).id)
            };
            match Fault::new(contract, report, stamp) {
                Ok(fault) => fault,
                Err(_) => unreachable!("a code of the contract and nothing else is accepted"),
            }
        })
    }
}

fn fallback<C: TypedCode>() -> C {
    match C::from_id(&C::contract().fallback().id) {
        Some(code) => code,
        None => unreachable!("the fallback is a code of the contract"),
    }
}

impl<C: TypedCode, E: Error + 'static> From<E> for Failure<C> {
    fn from(error: E) -> Self {
        Self::from_unknown(error, Report::default())
    }
}

/// Gives errors a code on their way.
pub trait ResultExt<T, E> {
    /// The error is a failure of this code, with the error underneath.
    fn fault<C: TypedCode>(self, code: C) -> Result<T, Failure<C>>
    where
        E: Error + 'static;

    /// The error is whatever this makes of it: a `match` that names every case does not compile
    /// until a new one is mapped (W9).
    fn fault_with<C: TypedCode, F: Into<Failure<C>>>(
        self,
        make: impl FnOnce(E) -> F,
    ) -> Result<T, Failure<C>>;
}

impl<T, E> ResultExt<T, E> for Result<T, E> {
    fn fault<C: TypedCode>(self, code: C) -> Result<T, Failure<C>>
    where
        E: Error + 'static,
    {
        self.map_err(|error| Failure::from_unknown(Unknown::from(error), Report::new(code.id())))
    }

    fn fault_with<C: TypedCode, F: Into<Failure<C>>>(
        self,
        make: impl FnOnce(E) -> F,
    ) -> Result<T, Failure<C>> {
        self.map_err(|error| make(error).into())
    }
}
