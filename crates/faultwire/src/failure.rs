//! A failure on its way to the boundary: what a handler returns.

use std::marker::PhantomData;

use faultwire_contract::{Caller, Condition, Fault, FaultError, Report, Stamp};

use crate::edge;
use crate::set::CodeSet;
use crate::typed::TypedCode;

/// What went wrong, under a contract: any of its codes, or [some](crate::codes!). `?` converts any
/// error, with the contract's code for unexpected errors:
///
/// ```
/// use faultwire::{ResultExt, standard};
/// use standard::{Code, Failure};
///
/// fn read(path: &str) -> Result<String, Failure> {
///     if path.contains("..") {
///         return Err(standard::permission_denied().message("The path leads outside").into());
///     }
///     Ok(std::fs::read_to_string(path).fault(Code::NotFound)?)
/// }
///
/// assert_eq!(read("../x").unwrap_err().code(), Code::PermissionDenied);
/// assert_eq!(read("/nosuch").unwrap_err().code(), Code::NotFound);
/// ```
#[derive(Clone, Debug)]
pub struct Failure<S> {
    report: Box<Report>,
    set: PhantomData<S>,
}

impl<C: TypedCode> Failure<C> {
    /// From a report that names its code by a text. One that is not registered is refused (K3).
    pub fn from_report(report: Report) -> Result<Self, FaultError> {
        // The contract has the words for it.
        Fault::new(C::contract(), report.clone(), &Stamp::default())?;
        Ok(Self::told(report))
    }
}

impl<S: CodeSet> Failure<S> {
    /// From a report whose code is one of these.
    pub(crate) fn told(report: impl Into<Box<Report>>) -> Self {
        Self { report: report.into(), set: PhantomData }
    }

    /// Its code.
    #[must_use]
    pub fn code(&self) -> S::Code {
        S::Code::from_id(&self.report.code).unwrap_or_else(fallback)
    }

    /// Its report, before the contract redacts it for a client.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The same, for adding facts that the boundary knows.
    pub fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    pub(crate) fn into_report(self) -> Report {
        *self.report
    }

    /// The fault that it is, as of now.
    #[must_use]
    pub fn into_fault(self) -> Fault {
        let stamp = edge::stamp(S::Code::contract());
        self.into_fault_at(&stamp)
    }

    /// The fault that it is, with a stamp from elsewhere.
    #[must_use]
    pub fn into_fault_at(self, stamp: &Stamp) -> Fault {
        self.into_fault_for(stamp, &Caller::default())
    }

    /// The same for a known client: what it may see, and what it sent.
    #[must_use]
    pub fn into_fault_for(self, stamp: &Stamp, caller: &Caller<'_>) -> Fault {
        let contract = S::Code::contract();
        let known = self.report.session.clone();
        Fault::for_caller(contract, self.report, stamp, caller).unwrap_or_else(|refused| {
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
